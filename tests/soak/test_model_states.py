"""Any order of what a caller may do with an Engine or a PVM, interrupts and faults included, ends as the serial run does."""

import tempfile
from pathlib import Path

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, rule

from hybrid.engine import begun
from tests.soak.case import EngineCase
from tests.soak.ordeal import TRIALS, Ordeal
from tests.soak.pvm_case import PVMCase
from tests.soak.replay import Differs, compare, simulated
from tests.support.states import finds

TICKS = 40
FEW = settings(max_examples=max(1, settings.default.max_examples // 25), stateful_step_count=12)


class Life(RuleBasedStateMachine):
    """A model that hypothesis puts through trials, in an order that it can make shorter."""

    case: type
    seeds: tuple[int, ...]  # of cases whose kernels other tests compile, too

    @initialize(data=st.data())
    def begin(self, data):
        self.made = self.case(data.draw(st.sampled_from(self.seeds), "seed"), TICKS)
        self.expected = self.made.serial()
        self.folder = tempfile.TemporaryDirectory()
        self.order = simulated(f"states {self.made.seed}", "cpu")
        self.order.__enter__()
        self.ordeal = Ordeal(self.made, Path(self.folder.name))
        self.ordeal.begin()

    @rule(trial=st.sampled_from(TRIALS))
    def suffer(self, trial):
        self.ordeal.suffer(trial)

    def teardown(self):
        try:
            compare(f"{self.made}", self.ordeal.end(), self.expected)
        finally:
            self.order.__exit__(None, None, None)
            self.folder.cleanup()


class EngineLife(Life):
    case, seeds = EngineCase, (6, 10, 24)


class PVMLife(Life):
    case, seeds = PVMCase, (3,)


TestEngine, TestPVM = EngineLife.TestCase, PVMLife.TestCase
TestEngine.settings = TestPVM.settings = FEW


class DelayedLife(EngineLife):
    seeds = (10,)


def test_batches_begun_that_are_forgotten_where_a_feed_fails_are_found(monkeypatch):
    monkeypatch.setattr(begun, "ahead", lambda arrays, tick: {})
    finds(DelayedLife, Differs)
