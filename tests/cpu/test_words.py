"""word2vec's own loop against plain NumPy, whatever is in a batch; windows by hand (tests/hybrid/feeds/test_pairs.py: in C)."""

from itertools import pairwise

import numpy as np
import pytest

from bench.oracles.tree import path
from cpu import negative, tree_softmax, words
from cpu.tree import tree as trees
from cpu.tree.logistic_rows import LONGEST
from cpu.words import windows
from hybrid.contract import Learned

CLASSES, ROWS, WIDTH = 60, 30, 37
TREE = trees.huffman(np.arange(1, CLASSES + 1))
RATE, ROWS_RATE = 0.1, 0.2


def case(bags, runs, seed=0, width=WIDTH):
    """Table, rows of classes or nodes, targets in runs, ids, and where bags begin; None: an id an example."""
    rng = np.random.default_rng(seed)
    table, rows = (rng.normal(size=(count, width)).astype(np.float32) / 6 for count in (ROWS, CLASSES))
    target = np.repeat(rng.integers(0, CLASSES, len(runs)), runs).astype(np.int32)
    bag_at = np.concatenate([[0], np.cumsum(rng.integers(0, 4, len(target)))]) if bags else None
    ids = rng.integers(0, ROWS, bag_at[-1] if bags else len(target)).astype(np.int32)
    return table, rows, target, ids, bag_at


def step(table, rows, target, ids, bag_at, count=None, weight=None, key=(3, 4)):
    """One step on copies: gradients, hidden vectors, losses, both tables; count: of negatives, None: the tree."""
    table, rows = table.copy(), rows.copy()
    grad, hidden = np.empty((2, len(target), table.shape[1]), table.dtype)
    loss = np.empty(len(target), table.dtype)
    inputs = words.Inputs(Learned(table), ROWS_RATE, bag_at, ids)
    if count is None:
        work = tree_softmax.workspace(len(target), table.shape[1], TREE.depth, table.dtype)
        given = Learned(rows), work, TREE, target, weight, RATE
        words.tree_step(grad, loss, hidden, inputs, *given)
    else:
        work = negative.workspace(len(target), table.shape[1], count, table.dtype)
        alias = negative.alias(np.arange(1, CLASSES + 1))
        given = Learned(rows), work, alias, count, key, target, weight, RATE
        words.negative_step(grad, loss, hidden, inputs, *given)
    return grad, hidden, loss, table, rows


def lists(target, count, key=(3, 4)):
    """The (row, turn) pairs of each run's first example."""
    if count is None:
        return [list(path(TREE, int(v))) for v in target]
    drawn = np.empty((len(target), count), np.int32)
    negative.draw(drawn, negative.alias(np.arange(1, CLASSES + 1)), *key)
    met = [dict.fromkeys(v for v in some.tolist() if v != own) for own, some in zip(target, drawn, strict=True)]
    return [[(int(own), 1), *((v, 0) for v in some)] for own, some in zip(target, met, strict=True)]


def oracle(table, rows, target, ids, bag_at, count=None, weight=None, key=(3, 4)):
    table, rows, entries = table.astype(float), rows.astype(float), lists(target, count, key)
    grad, hidden = np.zeros((2, len(target), table.shape[1]))
    loss, head, first = np.zeros(len(target)), 0, 0
    bags = [ids[n : n + 1] for n in range(len(ids))] if bag_at is None else np.split(ids, bag_at[1:-1])
    weight = np.ones(len(target)) if weight is None else weight
    while first < len(target):
        head = head if target[first] == target[head] else first
        last = first + 1
        while last < len(target) and target[last] == target[first] and last - first < LONGEST:
            last += 1
        met, turn = (np.array(column) for column in zip(*entries[head], strict=True))
        for b in range(first, last):
            hidden[b] = table[bags[b]].mean(axis=0) if len(bags[b]) else 0
        score = hidden[first:last] @ rows[met].T
        miss = (turn - 1 / (1 + np.exp(-score))) * weight[first:last, None]
        grad[first:last] = -miss @ rows[met]
        loss[first:last] = np.logaddexp(0, np.where(turn, -score, score)).sum(axis=1) * weight[first:last]
        rows[met] += RATE * miss.T @ hidden[first:last]
        for b in range(first, last):
            np.add.at(table, bags[b], -ROWS_RATE * grad[b])
        first = last
    return grad, hidden, loss, table, rows


RUNS = {"alone": [1] * 40, "pairs and threes": [2, 3] * 9, "long": [1, LONGEST, LONGEST + 1, 2 * LONGEST + 3, 1, 5]}


@pytest.mark.parametrize(
    ("bags", "runs", "count", "width"),
    [
        *((False, "alone", None, 37), (True, "alone", 5, 37), (True, "pairs and threes", None, 37)),
        *((False, "pairs and threes", 5, 37), (True, "long", 5, 37), (False, "alone", 0, 37)),
        *((False, "long", None, width) for width in (1, 33, 37, 128)),
    ],
)
def test_it_learns_as_numpy_does(bags, runs, count, width):
    given = case(bags, RUNS[runs], width=width)
    weight = np.random.default_rng(1).random(len(given[2])).astype(np.float32) if runs == "long" else None
    for found, expected in zip(step(*given, count, weight), oracle(*given, count, weight), strict=True):
        np.testing.assert_allclose(found, expected, rtol=0, atol=3e-5)


@pytest.mark.parametrize(("bags", "count"), [(False, 5), (True, None)])
def test_the_same_bits_at_any_number_of_threads(bags, count, check_threads):
    given = case(bags, [3, 1, 2, 17] * 5)
    check_threads(lambda: step(*given, count))


def test_an_empty_batch_moves_nothing():
    table, rows, target, ids, _ = case(False, [1])
    found = step(table, rows, target[:0], ids[:0], None, 5)
    np.testing.assert_array_equal(found[3], table)
    np.testing.assert_array_equal(found[4], rows)


@pytest.mark.parametrize(
    "keep, reach, expected",
    [
        ([1, 1, 1, 1, 1], [1, 1, 1, 1, 1], [[6], [5, 7], [6], [9], [8]]),
        ([1, 1, 1, 1, 1], [2, 1, 2, 3, 1], [[6, 7], [5, 7], [5, 6], [9], [8]]),
        ([1, 0, 1, 1, 0], [1, 1, 1, 1, 1], [[7], [5], []]),
        ([0, 0, 0, 0, 0], [1, 1, 1, 1, 1], []),
    ],
)
def test_by_hand(keep, reach, expected):
    keep = np.array(keep, bool)
    given = np.array([5, 6, 7, 8, 9], np.int32), np.array([0, 3, 5]), keep, np.array(reach, np.int8)
    context, words, at, kept_at = windows(*given)
    assert [context[first:last].tolist() for first, last in pairwise(at)] == expected
    assert words.tolist() == [word for word, kept in zip(range(5, 10), keep, strict=True) if kept]
    assert kept_at.tolist() == [0, *np.cumsum(keep)]
    assert context.dtype == words.dtype == np.int32
