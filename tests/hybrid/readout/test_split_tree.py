"""Which split trees are tried on a GPU, and that a split tree is a class of its own; see test_kinds.py for its numbers.

Here is tested hybrid/readout/base/halves.py.
"""

import numpy as np
import pytest

from hybrid.readout import SplitTreeReadout, TreeReadout, rebuild, trials


@pytest.mark.parametrize(("classes", "sizes"), [(2000, [15, 255, 1023]), (256, [15]), (257, [15, 255])])
def test_splits_are_tried_where_they_are_safe(classes, sizes):
    """255 nodes are the whole tree of 256 classes."""
    found = trials("tree", {"rate": 0.02, "split": None}, classes, 320)
    assert [trial.options for trial in found.tried] == [{"split": size} for size in sizes]
    assert (found.note, found.rival) == ("", "full")
    assert found.tried[0].remark == "the first 15 nodes learn by the batch, --split 0 keeps the tree whole"


def test_no_split_is_tried_where_its_top_may_diverge():
    found = trials("tree", {"rate": 0.02, "split": None}, 2000, 1280)
    assert found.tried == () and found.rival == "full"
    assert "rate times examples of a micro-batch is 25.6, and above 10" in found.note


def test_a_split_that_the_user_names_is_measured_alone():
    assert trials("tree", {"rate": 0.02, "split": 0}, 2000, 320) == ((), "", "full")


def test_other_readouts_have_nothing_to_try():
    assert trials("full", {"rate": 0.02}, 2000, 320) == ((), "", "")


def test_a_tree_with_a_split_is_a_split_tree():
    made = TreeReadout(np.arange(8), 4, split=3)
    assert type(made) is SplitTreeReadout and made.kind == "split_tree"
    assert type(TreeReadout(np.arange(8), 4)) is TreeReadout


def test_facts_of_before_split_trees_had_a_kind_make_one():
    facts = TreeReadout(np.arange(8), 4, split=3).describe()
    assert type(rebuild(facts | {"kind": "tree"})) is SplitTreeReadout


def test_a_split_of_nothing_is_refused():
    with pytest.raises(ValueError, match="split: found 0, expected at least 1 node"):
        SplitTreeReadout(np.arange(8), 4, split=0)
