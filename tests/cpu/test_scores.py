"""All log-probabilities at once: those of the functions that tell one class, a row worked by hand, the same bits anywhere."""

import numpy as np
import pytest

from cpu import tree_softmax
from cpu.output import scores
from cpu.tree.tree import balanced, huffman
from hybrid.contract import Learned
from tests.support.softmaxes import oracle


def case(rows, width, batch, scale=1.0):
    rng = np.random.default_rng(0)
    made = scale * rng.normal(size=(rows, width)), rng.normal(size=(batch, width))
    return [array.astype(np.float32) for array in made]


def written(function, classes, table, *arguments):
    *more, hidden = arguments
    out = np.full((len(hidden), classes), np.nan, np.float32)
    function(out, Learned(table.astype(np.float32)), *more, hidden.astype(np.float32))
    return out


@pytest.mark.parametrize("classes", [2, 255, 256, 257, 5000])
def test_a_softmax_is_the_float64_oracle(classes, threads):
    weights, hidden = case(classes, 7, 5)
    np.testing.assert_allclose(written(scores.softmax, classes, weights, hidden), oracle(weights, hidden), atol=1e-5)


@pytest.mark.parametrize(("classes", "shape"), [(2, "balanced"), (3, "huffman"), (257, "balanced"), (3000, "huffman")])
def test_a_tree_is_its_log_prob_of_every_class(classes, shape, threads):
    tree = huffman(10**6 // np.arange(1, classes + 1)) if shape == "huffman" else balanced(classes)
    nodes, hidden = case(classes - 1, 7, 3, scale=3)
    found = written(scores.tree, classes, nodes, tree, hidden)
    np.testing.assert_allclose(np.exp(found).sum(axis=1, dtype=float), 1, rtol=1e-4)
    for b in range(len(hidden)):
        one_by_one = np.empty(classes, np.float32)
        repeated = np.repeat(hidden[b : b + 1], classes, axis=0)
        tree_softmax.log_prob(one_by_one, Learned(nodes), tree, repeated, np.arange(classes, dtype=np.int32))
        np.testing.assert_allclose(found[b], one_by_one, rtol=1e-5, atol=1e-5)


def test_unlikely_classes_keep_their_size_and_overflow_loses_nothing():
    """Scores of some hundreds: exp of them is infinite in float32, and 1 minus a probability rounds to 0."""
    hidden = np.array([[200.0], [-200.0]], np.float32)
    found = written(scores.softmax, 3, np.array([[0], [1], [2]], np.float32), hidden)
    np.testing.assert_allclose(found, [[-400, -200, 0], [0, -200, -400]], atol=1e-4)
    found = written(scores.tree, 2, np.ones((1, 1), np.float32), balanced(2), hidden)
    np.testing.assert_allclose(found, [[-200, 0], [0, -200]], atol=1e-4)


def test_a_sum_that_overflows_in_a_later_chunk_of_a_shard_begins_anew_and_loses_nothing():
    """The base is the largest logit of a shard's first chunk until a sum overflows; here every shard has three chunks."""
    weights = np.zeros((3 * 16 * 256, 1), np.float32)
    weights[300:310] = 95  # in the second chunk of the first shard: e^95 is infinite in float32
    out = written(scores.softmax, len(weights), weights, np.ones((1, 1), np.float32))[0]
    np.testing.assert_allclose(out[[0, 300, -1]], [-95 - np.log(10), -np.log(10), -95 - np.log(10)], rtol=1e-5)
    weights[300:310] = 0
    weights[300], weights[600:603] = 88, 87  # neither alone, but e^88 of the second chunk and 3 e^87 of the third
    out = written(scores.softmax, len(weights), weights, np.ones((1, 1), np.float32))[0]
    norm = 88 + np.log(1 + 3 / np.e)
    np.testing.assert_allclose(out[[0, 300, 600]], [-norm, 88 - norm, 87 - norm], rtol=1e-5)


@pytest.mark.parametrize("function", ["softmax", "tree"])
def test_the_same_bits_at_any_number_of_threads(function, check_threads):
    table, hidden = case(1999 + (function == "softmax"), 5, 3)
    more = [balanced(2000)] if function == "tree" else []
    check_threads(lambda: [written(getattr(scores, function), 2000, table, *more, hidden)])
