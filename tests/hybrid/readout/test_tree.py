"""A tree readout: which forms learn online, what a checkpoint holds, and what is tried on a GPU."""

import numpy as np
import pytest

from hybrid.readout import TreeReadout
from hybrid.readout.tree import least, trials


@pytest.mark.parametrize("form, online", [({}, True), ({"mode": "batch"}, False), ({"split": 1}, False)])
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
        ({"mode": "deterministic"}, ["batch"]),
        ({"mode": "deterministic", "biases": True}, ["batch"]),
        ({"mode": "deterministic", "rate": 0.16}, []),
        ({"mode": "batch"}, []),
        ({"mode": "deterministic", "readout_optimiser": "adagrad"}, []),
    ],
)
def test_ways_for_nodes_to_wait_less_are_tried_where_the_serial_loop_is_asked_for(options, modes):
    tried = trials({"rate": 0.01, "split": 0} | options, 1000, 16).tried
    assert [trial.options["mode"] for trial in tried] == modes
