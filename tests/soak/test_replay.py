"""A few seeds pass, and faults that are planted in the schedule, in checkpoints and in what ranks add up are caught."""

import os
import subprocess
import sys

import pytest

from hybrid.engine import begun, ranked
from hybrid.engine.schedule import Plan, Schedule
from tests.soak.case import EngineCase
from tests.soak.pvm_case import PVMCase
from tests.soak.replay import Differs, drawn, replay
from tests.support.imports import ROOT

TICKS = 40
DELAYED = 10  # a seed: three micro-batches, delay 1
RANKED = 6  # four micro-batches, three ranks
ONE_FAILS = """
import sys
from tests.soak import __main__ as soak, case
case.EngineCase.held = lambda self, model: {"bytes": repr(id(model)).encode()}
sys.exit(soak.main())
"""


@pytest.mark.parametrize("seed", [DELAYED, RANKED])
def test_all_ways_of_an_engine_give_the_numbers_of_the_serial_run(seed):
    said: list[str] = []
    assert replay(seed, TICKS, said.append, EngineCase(seed, TICKS)) >= 3 * TICKS
    ways = [line.split()[0] for line in said if "equal to the serial run" in line]
    assert ways == ["overlapped:", *["ranks:"] * (3 if seed == RANKED else 0), "ordeal:"]


def test_all_ways_of_a_pvm_give_the_numbers_of_its_steps():
    assert replay(3, TICKS, case=PVMCase(3, TICKS)) >= 5 * TICKS


def test_a_seed_is_one_case():
    kinds = {type(drawn(seed, TICKS)).__name__ for seed in range(40)}
    assert kinds == {"EngineCase", "PVMCase", "GpuEngineCase", "GpuPVMCase"}
    assert str(drawn(7, TICKS)) == str(drawn(7, TICKS)) != str(drawn(8, TICKS))


@pytest.mark.parametrize(
    ("stage", "seed"),  # with a delay a readout comes long after its forward anyway
    [("forward", DELAYED), ("readout", RANKED), ("backward", DELAYED), ("scatter", DELAYED)],
)
def test_a_wait_that_is_dropped_is_caught(monkeypatch, stage, seed):
    def dropped(stages):
        return [one._replace(after=()) if one.name == stage else one for one in stages]

    made = Schedule.__init__
    monkeypatch.setattr(
        Schedule,
        "__init__",
        lambda self, plan, *given, **named: made(self, Plan(*map(dropped, plan)), *given, **named),
    )
    _caught(seed)


def test_micro_batches_in_another_order_are_caught(monkeypatch):
    put = Schedule._put
    monkeypatch.setattr(Schedule, "_put", lambda self, stages, slots: put(self, stages, slots[::-1]))
    _caught(DELAYED)


def test_another_delay_is_caught(monkeypatch):
    fill = Schedule._fill

    def sooner(self, *given):
        self.delay = 0
        fill(self, *given)

    monkeypatch.setattr(Schedule, "_fill", sooner)
    _caught(DELAYED)


def test_batches_begun_that_a_checkpoint_forgets_are_caught(monkeypatch):
    monkeypatch.setattr(begun, "kept", lambda sets, route: {})
    _caught(DELAYED)


def test_a_sum_that_differs_in_its_last_bit_is_caught(monkeypatch):
    class Off(ranked.Sum):
        def __init__(self, add):
            super().__init__(lambda left, right: add(left, right * (1 + 2**-23)))

    monkeypatch.setattr(ranked, "Sum", Off)
    _caught(RANKED)


def _caught(seed):
    with pytest.raises((Differs, AssertionError, FloatingPointError)):
        replay(seed, TICKS, case=EngineCase(seed, TICKS))


def test_the_command_goes_from_seed_to_seed_on_the_simulated_gpu_too():
    """In a process of its own, since a GPU is for tests/gpu alone."""
    ended = _soak("-m", "tests.soak", "60", "--first", "8", "--each", "20")
    assert ended.returncode == 0 and "0 failed" in ended.stdout, ended.stderr


def test_the_command_says_how_to_repeat_a_seed_that_fails():
    ended = _soak("-c", ONE_FAILS, "20", "--first", str(DELAYED), "--each", "20")
    assert ended.returncode == 1
    assert f"seed {DELAYED} fails; repeat it: python -m tests.replay {DELAYED} --ticks 20" in ended.stdout
    assert f"seed {DELAYED}, overlapped: bytes differs at the end" in ended.stderr


def _soak(*words):
    command, environment = [sys.executable, *words], os.environ | {"NUMBA_NUM_THREADS": "4"}
    return subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False)
