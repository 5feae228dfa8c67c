"""Which split trees are tried on a GPU, and that a split tree is a class of its own; see test_kinds.py for its numbers.

Here is tested hybrid/readout/head.py.
"""

import numpy as np
import pytest

from hybrid.readout import SplitTreeReadout, TreeReadout, rebuild, trials
from hybrid.readout.split_tree import SplitOnOneDevice


@pytest.mark.parametrize(("classes", "sizes"), [(2000, [15, 255, 1023]), (256, [15]), (257, [15, 255])])
def test_splits_are_tried_where_they_are_safe(classes, sizes):
    """255 nodes are the whole tree of 256 classes."""
    found = trials("tree", {"rate": 0.02, "split": None}, classes, 320)
    there = {"split_tail": "device"}
    assert [trial.options for trial in found.tried] == [
        {"split": size} | tail for size in sizes for tail in ({}, there)
    ]
    assert (found.note, found.rival) == ("", "full")
    assert found.tried[0].remark == "the first 15 nodes learn by the batch, --split 0 keeps the tree whole"


def test_a_mode_is_tried_beside_the_serial_loop():
    options = {"rate": 0.02, "split": 0, "mode": "deterministic"}
    (batch,) = trials("tree", options, 2000, 320).tried
    assert batch.options == {"mode": "batch"}
    assert "up to 64 examples learn at once at a node: perplexity on WikiText-2 was 219.2" in batch.remark


def test_what_the_user_names_is_kept():
    assert trials("tree", {"rate": 0.02, "split": None, "mode": "batch"}, 2000, 320).tried == ()
    assert trials("tree", {"rate": 0.02, "split": 0}, 2000, 320) == ((), "", "full")
    assert trials("full", {"rate": 0.02}, 2000, 320) == ((), "", "")


def test_no_split_is_tried_where_its_top_may_diverge():
    found = trials("tree", {"rate": 0.02, "split": None}, 2000, 1280)
    assert found.tried == () and found.rival == "full"
    assert "rate times examples of a micro-batch is 25.6, and above 10" in found.note


def test_a_tree_with_a_split_is_a_split_tree():
    made = TreeReadout(np.arange(8), 4, split=3)
    assert type(made) is SplitTreeReadout and made.kind == "split_tree"
    assert type(rebuild(made.describe() | {"kind": "tree"})) is SplitTreeReadout  # as facts once said
    assert type(TreeReadout(np.arange(8), 4)) is TreeReadout
    with pytest.raises(ValueError, match="split: found 0, expected at least 1 node"):
        SplitTreeReadout(np.arange(8), 4, split=0)


def test_a_tail_where_it_cannot_be_is_refused():
    with pytest.raises(ValueError, match='split_tail: found "device" without a split, expected "cpu"'):
        TreeReadout(np.arange(8), 4, split_tail="device")
    with pytest.raises(ValueError, match="split_tail: found 'disk', expected one of cpu, device"):
        TreeReadout(np.arange(8), 4, split=3, split_tail="disk")
    with pytest.raises(ValueError, match='split_tail: found "device", expected "cpu"; TreeReadout takes both'):
        SplitTreeReadout(np.arange(8), 4, split=3, split_tail="device")


def test_both_places_of_a_tail_give_the_same_numbers():
    made = [TreeReadout(np.arange(8), 4, split=3, split_tail=tail, rate=0.5) for tail in ("cpu", "device")]
    assert [type(readout) for readout in made] == [SplitTreeReadout, SplitOnOneDevice]
    hidden, target = np.random.default_rng(0).normal(size=(20, 4)).astype(np.float32), np.arange(20, dtype=np.int32) % 8
    grads, weight = np.empty((2, 20, 4), np.float32), np.linspace(0.5, 2, 20, dtype=np.float32)
    losses = [readout.step(grad, hidden, target, weight) for readout, grad in zip(made, grads, strict=True)]
    assert losses[0] == losses[1] and grads[0].tobytes() == grads[1].tobytes()
    assert made[0].nodes.tobytes() == made[1].nodes.tobytes()
    np.testing.assert_allclose(*(readout.log_prob(hidden, target) for readout in made), rtol=1e-6)
    assert type(rebuild(made[1].describe())) is SplitOnOneDevice
