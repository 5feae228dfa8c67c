"""Collections of units: who is measured is decided by memory and minutes."""

import pytest

from bench.step import collections
from bench.step.collections import Case, Rival, plan

RIVALS = [Rival("ours", None, 4, (10, 1)), Rival("other", None, 8, (30, 9), begin=5)]


@pytest.fixture
def two(monkeypatch):
    monkeypatch.setattr(collections, "rivals", lambda units: RIVALS)


def test_whom_memory_does_not_hold_is_left_out_by_name(two):
    case = Case(1000, 1, 0.9)
    ours, other = (case.bytes(one) for one in RIVALS)
    assert other - ours == 4 * case.parameters
    room = 4 * case.parameters + ours
    planned, left_out, _ = plan([case], room + other, 8, 1e9, 1e9)
    assert [one.name for one in planned[0].rivals] == ["ours", "other"] and not left_out and not planned[0].left_out
    planned, left_out, _ = plan([case], room + other - 1, 8, 1e9, 1e9)
    assert [one.name for one in planned[0].rivals] == ["ours"] and not left_out
    assert planned[0].left_out[0].startswith("other at 14,899,000 parameters, batch 1, momentum 0.9: ")
    planned, left_out, _ = plan([case], room - 1, 8, 1e9, 1e9)
    assert not planned and "memory does not hold it" in left_out[0]
