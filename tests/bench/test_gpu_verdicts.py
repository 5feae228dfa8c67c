"""Each bar belongs to its work and sizes; of several rivals the best counts; what has no rival is neither met nor missed."""

import pytest

from bench.gpu import gpu
from bench.gpu.gpu import Bar
from bench.gpu.machine import SINGLY


def record(who="ours", value=4e9, work="units.step", params=None, **more):
    return {"work": work, "who": who, "value": value, "params": params or {}} | more


def test_each_bar_belongs_to_its_work_and_sizes():
    ours = record(params={"units": 9, "batch": 1, "momentum": 0.0})
    assert [(bar.of, bar.least) for bar in gpu.bars_of(ours)] == [("bandwidth_share", 0.88), ("ratio", 8)]
    assert gpu.bars_of(record(params={"batch": 1, "momentum": 0.9})) == (gpu.COPY,)
    assert gpu.bars_of(record(params={"batch": 4, "momentum": 0.0})) == ()
    assert gpu.bars_of(record(work="tree.step", params={"batch": 1, "momentum": 0.0})) == ()


@pytest.mark.parametrize(
    ("bar", "found", "met"),
    [
        (Bar("value", 4e9), 4e9, True),
        (Bar("value", 5e9), 4e9, False),
        (Bar("bandwidth_share", 0.6), 0.75, True),
        (Bar("overlap", 0.9), None, None),
        (Bar("ratio", 8, " bmm + SGD"), 8.0, True),
        (Bar("ratio", 9, " bmm + SGD"), 8.0, False),
        (Bar("ratio", 3), 4.0, True),
        (Bar("ratio", 1, " cross_entropy + SGD"), None, None),
    ],
)
def test_a_bar_is_met_or_missed_or_has_nothing_to_compare_with(bar, found, met):
    ours = record(bandwidth_share=0.75)
    others = [record(SINGLY, 9e9), record("torch 9 bmm by hand", 1e9), record("torch 9 bmm + SGD", 0.5e9)]
    verdict = gpu.judge(bar, ours, [ours, *others])
    assert (verdict["found"], verdict["met"]) == (found, met)
