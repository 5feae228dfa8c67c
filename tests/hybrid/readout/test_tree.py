"""Owners of a tree readout's nodes: they change no node, and a checkpoint goes on with as many; names of modes that were."""

import numpy as np
import pytest

from hybrid.readout import TreeReadout, rebuild
from hybrid.readout.tree import least, trials


def batch(classes, width, rows=32, seed=0):
    rng = np.random.default_rng(seed)
    hidden = rng.normal(size=(rows, width)).astype(np.float32)
    return np.empty_like(hidden), hidden, rng.integers(0, classes, rows).astype(np.int32)


@pytest.mark.parametrize("shape", ["huffman", "balanced"])
@pytest.mark.parametrize("split", [0, 3])
def test_a_tree_with_more_owners_moves_its_nodes_alike_and_is_rebuilt_with_them(threads, shape, split):
    counts = 1000 // np.arange(1, 301)
    few, many = (TreeReadout(counts, 8, tree=shape, split=split, batch=32, owners=owners) for owners in (4, 16))
    assert "owners" not in few.describe() and many.tree.owner.max() == 15
    again = rebuild(many.describe())
    for seed in range(3):
        grad, hidden, target = batch(300, 8, seed=seed)
        expected = np.empty_like(grad)
        few.step(expected, hidden, target)
        again.step(grad.copy(), hidden, target)
        many.step(grad, hidden, target)
        np.testing.assert_allclose(grad, expected, atol=1e-6)
    np.testing.assert_array_equal(many.nodes, few.nodes)
    if shape == "balanced":  # whose checkpoint has no counts: the nodes alone are to be filled in
        np.testing.assert_array_equal(again.tree.owner, many.tree.owner)
    assert again.owners == 16 and again.tree.owner.max() == 15


@pytest.mark.parametrize(
    "form, online", [({}, True), ({"mode": "grouped"}, True), ({"mode": "batch"}, False), ({"split": 1}, False)]
)
def test_a_tree_whose_nodes_move_by_examples_on_the_cpu_learns_online(form, online):
    assert TreeReadout([3, 2, 1], 4, **form).online is online


@pytest.mark.parametrize("facts", [{}, {"biases": True}, {"optimiser": "adagrad"}])
def test_a_checkpoint_holds_no_number_less_than_is_foretold(facts):
    made = TreeReadout(np.ones(9), 4, tree="balanced", **facts)
    arrays = [array for name, array in made.parameters().items() if name != "owner"]
    assert least(**made.describe()) == sum(array.size for array in arrays)


@pytest.mark.parametrize(
    "options, modes",
    [
        ({"mode": "deterministic"}, ["ordered", "batch"]),
        ({"mode": "deterministic", "biases": True}, ["batch"]),
        ({"mode": "deterministic", "rate": 2.0}, ["ordered"]),
        ({"mode": "grouped"}, []),
        ({"mode": "deterministic", "readout_optimiser": "adagrad"}, []),
    ],
)
def test_ways_for_nodes_to_wait_less_are_tried_where_the_serial_loop_is_asked_for(options, modes):
    tried = trials({"rate": 0.01, "split": 0} | options, 1000, 16).tried
    assert [trial.options["mode"] for trial in tried] == modes
