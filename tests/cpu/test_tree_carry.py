"""Nodes carried over to another tree: what stays the same keeps its bits, what is new is what the definition says."""

from typing import Any, NamedTuple

import numpy as np
import pytest

from cpu import tree_carry
from cpu.tree import balanced, huffman, path


class Learned(NamedTuple):
    rows: Any
    biases: Any = None
    squares: Any = None
    bias_squares: Any = None


def learned(classes, width=3, seed=0):
    rng = np.random.default_rng(seed)
    shape = (classes - 1, width)
    return Learned(*(rng.random(size).astype(np.float32) for size in (shape, shape[0], shape, shape[0])))


def below(tree, masses):
    """Left and right classes of each node."""
    sides = [([], []) for _ in tree.node_up]
    for leaf in range(masses.size):
        for node, turn in path(tree, leaf):
            sides[node][turn].append(leaf)
    return sides


MASSES = np.array([8.0, 1, 2, 5, 1, 3, 1])


HIDDEN = np.random.default_rng(3).normal(0.5, 1, (50, 3)).astype(np.float32)


@pytest.mark.parametrize("biased", [True, False])
def test_vectors_and_new_nodes_follow_the_definition(biased):
    old, new, had = huffman(MASSES), balanced(7), learned(7)
    had = had if biased else had._replace(biases=None, bias_squares=None)
    vectors = np.zeros((7, 3))
    for node, (left, right) in enumerate(below(old, MASSES)):
        p = MASSES[right].sum() / MASSES[left + right].sum()
        vectors[left] -= p * had.rows[node]
        vectors[right] += (1 - p) * had.rows[node]
    np.testing.assert_allclose(tree_carry.vectors(had, old, MASSES), vectors, rtol=1e-5, atol=1e-6)
    made = tree_carry.carried(had, old, new, MASSES, HIDDEN)
    visits = sum(MASSES[left + right].sum() for left, right in below(old, MASSES))
    towards = []
    for node, (left, right) in enumerate(below(new, MASSES)):
        mean = [np.average(vectors[side], axis=0, weights=MASSES[side]) for side in (left, right)]
        odds = np.log(MASSES[right].sum() / MASSES[left].sum())
        bias = made.biases[node] if biased else 0
        np.testing.assert_allclose(made.rows[node] @ HIDDEN.mean(0) + bias, odds, rtol=1e-4, atol=1e-5)
        towards.append(made.rows[node] - (mean[1] - mean[0]))
        each = MASSES[left + right].sum() / visits
        np.testing.assert_allclose(made.squares[node], had.squares.sum(0) * each, rtol=1e-5)
        if biased:
            np.testing.assert_allclose(made.bias_squares[node], had.bias_squares.sum() * each, rtol=1e-5)
    if biased:
        np.testing.assert_allclose(towards, np.zeros((6, 3)), atol=1e-5)
    else:
        assert np.linalg.matrix_rank(towards, tol=1e-4) == 1, "all are set off along one direction"


@pytest.mark.parametrize("masses", [MASSES, np.arange(40.0) + 1])
def test_the_same_tree_keeps_every_bit(masses):
    had = learned(masses.size)
    made = tree_carry.carried(had, huffman(masses), huffman(masses), masses, HIDDEN)
    assert all(ours.tobytes() == theirs.tobytes() for ours, theirs in zip(made, had, strict=True))


def test_a_node_whose_sides_change_places_turns_its_sign():
    had, tree = learned(3), balanced(3)  # the root parts {0, 1} and {2}, or {0} and the others
    turned = tree._replace(
        leaf_up=tree.leaf_up ^ 1, node_up=np.where(tree.node_up > 0, tree.node_up ^ 1, tree.node_up ^ (tree.node_up >= 0)),
        children=tree.children[:, ::-1].copy(),
    )  # fmt: skip
    made = tree_carry.carried(had, tree, turned, np.ones(3), HIDDEN)
    np.testing.assert_array_equal(made.rows, -had.rows)
    np.testing.assert_array_equal(made.biases, -had.biases)
    np.testing.assert_array_equal(made.squares, had.squares)


def test_only_rows_are_carried_where_nothing_else_is_kept():
    made = tree_carry.carried(Learned(learned(7).rows), huffman(MASSES), balanced(7), MASSES, 0 * HIDDEN)
    assert made[1:] == (None, None, None) and made.rows.dtype == np.float32
