"""Trees as readouts: a tree that is given, exchanged or grown."""

import copy
import pickle

import numpy as np
import pytest

from hybrid import SGD, Adagrad, Batched, RowAdagrad, trees
from hybrid.readout import TreeReadout
from tests.support.readouts import BATCH, CLASSES, COUNTS, MAKE, WIDTH, batch, every, frozen, reloaded, train

VECTORS = np.random.default_rng(5).normal(size=(CLASSES, 4)).astype(np.float32)


def test_a_tree_of_more_classes_than_its_pointers_can_name_is_refused_before_it_takes_memory():
    with pytest.raises(ValueError, match="classes: found 1073741825, expected at most 1073741824"):
        TreeReadout(2**30 + 1, 1, tree="balanced")


def test_a_checkpoint_keeps_a_tree_that_is_given():
    given = trees.clustered(VECTORS, COUNTS)
    readout = TreeReadout(COUNTS, WIDTH, tree=given, batch=BATCH, optimiser=Adagrad(0.1))
    train(readout)
    again = reloaded(readout)
    assert again.tree.node_up.tolist() == given.node_up.tolist() and again.describe()["tree"] == "given"
    assert train(again, first=5) == train(readout, first=5) and frozen(again) == frozen(readout)
    again.parameters()["leaf_up"][3] = 0
    with pytest.raises(ValueError, match="pointers to parents"):
        again.restore({})


def test_on_a_cpu_nodes_learn_example_by_example_in_every_mode():
    """So a run that learned in batches on a GPU goes on here."""
    again = reloaded(TreeReadout(COUNTS, WIDTH, mode=Batched(3), batch=BATCH, optimiser=SGD(0.3)))
    assert (again.describe()["mode"], again.describe()["together"]) == ("batch", 3)
    assert train(again) == train(MAKE["huffman"](rate=0.3))


def test_new_nodes_learn_from_examples():
    readout = MAKE["huffman"](rate=0.1)
    _, hidden, _ = batch(seed=1)
    target = np.arange(BATCH, dtype=np.int32) % 8  # what is learned can be told from what is not
    grad = np.empty_like(hidden)
    blank = readout.log_prob(hidden, target).mean()
    for _ in range(20):
        readout.step(grad, hidden, target)
    learned = readout.log_prob(hidden, target).mean()
    other, tree = copy.deepcopy(readout), trees.clustered(readout.vectors(), COUNTS)
    other.regrow(tree)
    readout.regrow(tree, np.tile(hidden, (20, 1)), np.tile(target, 20))
    at_0 = other.log_prob(hidden, target).mean()
    np.testing.assert_allclose(np.exp(every(readout, hidden).astype(float)).sum(axis=1), 1, atol=1e-5)
    assert readout.log_prob(hidden, target).mean() > max(at_0, blank) + (learned - blank) / 2
    readout.step(grad, hidden, target)


def test_refused_where_it_cannot_be():
    with pytest.raises(ValueError, match="tree: found 5 leaves, expected 37"):
        TreeReadout(COUNTS, WIDTH, tree=trees.balanced(5))
    with pytest.raises(ValueError, match="tree: found ndarray, expected one of huffman, balanced"):
        TreeReadout(COUNTS, WIDTH, tree=np.zeros(3))
    alone = MAKE["huffman"]()
    before = frozen(alone)
    with pytest.raises(ValueError, match="tree: found 5 leaves"):
        alone.regrow(trees.balanced(5), batch()[1])
    with pytest.raises(ValueError, match="counts: found 5, expected 37"):
        alone.regrow(trees.balanced(CLASSES), counts=np.ones(5))
    _, hidden, target = batch()
    with pytest.raises(IndexError, match="target"):
        alone.regrow(trees.balanced(CLASSES), hidden, target + np.int32(CLASSES))
    assert frozen(alone) == before


def test_more_classes_cost_one_class_half_of_its_probability_and_others_nothing():
    readout = MAKE["balanced"](optimiser=RowAdagrad(0.3), biases=True)
    train(readout)
    _, hidden, _ = batch(seed=9)
    for more in ([3], [1, 9, 2, 0]):
        classes = readout.classes
        before, twin = every(readout, hidden), copy.deepcopy(readout)
        readout.add_classes(more)
        after = every(readout, hidden)
        same = (before == after[:, :classes]).all(axis=0)
        assert same.sum() == classes - 1
        shared = np.exp(before[:, ~same])
        np.testing.assert_allclose(np.exp(after[:, :classes][:, ~same]), shared / 2, rtol=1e-5)
        np.testing.assert_allclose(np.exp(after[:, classes:]).sum(axis=1, keepdims=True), shared / 2, rtol=1e-5)
        zero = ~readout.nodes.any(axis=1) & (readout.biases == 0) & (readout._host.squares == 0)
        assert zero.sum() == (~twin.nodes.any(axis=1)).sum() + len(more)
    assert readout.classes == CLASSES + 5 and readout.scores(hidden).shape == (BATCH, CLASSES + 5)
    target = np.full(BATCH, CLASSES + 2, np.int32)
    other = pickle.loads(pickle.dumps(readout))
    for one in (readout, other):
        for _ in range(15):
            one.step(np.empty_like(hidden), hidden, target)
        assert (one.best(hidden, 1)[0] == CLASSES + 2).mean() > 0.9
    assert frozen(other) == frozen(readout) and readout.describe()["tree"] == "given"
    readout.regrow(trees.balanced(readout.classes), hidden, target)


@pytest.mark.parametrize("counts", [[], [[1]], [-1], [np.nan], ["one"], 2])
def test_counts_of_no_classes_are_refused_and_nothing_moves(counts):
    alone = MAKE["huffman"]()
    before = frozen(alone)
    with pytest.raises(ValueError, match="counts"):
        alone.add_classes(counts)
    assert frozen(alone) == before and alone.classes == CLASSES and alone.shape == "huffman"


def test_a_balanced_tree_grows_as_one_that_was_loaded_which_has_no_counts():
    readout = TreeReadout(COUNTS + 1, WIDTH, tree="balanced", batch=BATCH)
    other = pickle.loads(pickle.dumps(readout))
    for one in (readout, other):
        one.add_classes([3, 1])
    assert frozen(other) == frozen(readout)
    for one in (readout, other):
        one.regrow(trees.huffman(np.arange(CLASSES + 2)), counts=np.arange(CLASSES + 2))
    assert readout.counts.tolist() == list(range(CLASSES + 2))
    assert frozen(other) == frozen(readout) and readout.vectors().tobytes() == other.vectors().tobytes()
