"""Runs of a model that only adds: what they leave behind, however they end. test_engine.py has those of an engine."""

import numpy as np
import pytest

from cpu.device import Device
from hybrid.feeds import Batch
from hybrid.schedule.runner import Course, Runner
from hybrid.schedule.schedule import Plan, Schedule, Stage
from hybrid.schedule.slot import Slot


class Adder(Runner[int]):
    """Its one stage adds the target of an example; 13 it refuses when it has been added."""

    def __init__(self):
        super().__init__("adder", "take another")
        self.sum, self.runs_left = 0, 0

    def run(self, targets):
        return self._follow(lambda: self._laid_out(targets))

    def _laid_out(self, targets):
        queues = dict.fromkeys(("feed", "sparse"), Device().inline("all", 1))
        slots = [[Slot(1, 1, {}, Device())] for _ in range(2)]
        plan = Plan([], [Stage("add", "sparse", self._add)], [])
        return Course(Schedule(plan, slots, queues, 0, self.trace), self._batches(targets))

    def _batches(self, targets):
        for tick, target in enumerate(targets, self.tick):
            yield tick, Batch(np.zeros(1, np.int32), None, np.array([target], np.int32))

    def _add(self, slot):
        self.sum += int(slot.target[0])
        if slot.target[0] == 13:
            raise ValueError("found 13")

    def _result(self, tick):
        return self.sum

    def _leave(self):
        self.runs_left += 1


def test_a_run_that_is_left_ends_where_the_next_begins():
    adder = Adder()
    first = adder.run([1, 2, 3])
    assert next(first) == 1 and adder.runs_left == 0
    assert next(adder.run([5])) == 6 and (adder.tick, adder.runs_left) == (2, 1)
    with pytest.raises(RuntimeError, match="adder: found a run that ended when another run"):
        next(first)


def test_what_fails_when_a_run_ends_tears_the_model(monkeypatch):
    adder = Adder()

    def failed():
        raise OSError("no room")

    monkeypatch.setattr(adder, "_leave", failed)
    with pytest.raises(OSError, match="no room"):
        list(adder.run([1]))
    assert adder.torn == "tick 1 failed half-way: no room"
