"""One seed: a model, and all the ways in which it may learn, each beside its serial run, byte for byte."""

import contextlib
import random
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from unittest import mock

import hybrid.engine.schedule
from tests import cudasim
from tests.soak import ranks
from tests.soak.case import Case, EngineCase, Outcome, Way
from tests.soak.gpu_case import GpuEngineCase, GpuPVMCase
from tests.soak.ordeal import Ordeal
from tests.soak.pvm_case import PVMCase
from tests.soak.queues import ordered


class Differs(AssertionError):
    """A way has given other bytes than the serial run."""


class Clock:
    """In the place of `time` for a schedule, which decides by it whether stages overlap: seconds drawn from a seed."""

    def __init__(self, rng: random.Random):
        self._rng, self._now = rng, 0.0

    def perf_counter(self) -> float:
        """Later than before, or as late."""
        self._now += self._rng.choice([0.0, 1e-6, 1e-3, 1e3]) * self._rng.random()
        return self._now


def drawn(seed: int, ticks: int) -> Case:
    """The case of a seed."""
    kinds: list[Any] = [EngineCase] * 6 + [PVMCase] * 3 + [GpuEngineCase, GpuPVMCase]
    return random.Random(f"kind {seed}").choice(kinds)(seed, ticks)


def replay(seed: int, ticks: int, say: Callable[[str], None] = lambda line: None, case: Case | None = None) -> int:
    """Compare all ways of a seed with its serial run; how many ticks were computed. Raises Differs, or what a way raised."""
    case = case or drawn(seed, ticks)
    say(f"seed {seed}: {case}")
    expected = case.serial()
    done = len(expected.ticks)
    for name, way in WAYS.items():
        with simulated(f"{name} {seed}", case.device):
            for count, found in way(case, say):
                compare(f"seed {seed}, {name}", found, expected)
                say(f"  {name}: {count} ticks, equal to the serial run")
                done += count
    return done


def compare(name: str, found: Outcome, expected: Outcome) -> None:
    """Raise Differs, saying what, unless two runs are the same."""
    for number, given in expected.ticks.items():
        if found.ticks.get(number) != given and not (number in found.unseen and number not in found.ticks):
            raise Differs(f"{name}: tick {number} is the first that differs")
    if more := found.ticks.keys() - expected.ticks.keys():
        raise Differs(f"{name}: found tick {min(more)}, which the serial run does not have")
    for array, content in (expected.model or {}).items():
        if found.model is not None and found.model.get(array) != content:
            raise Differs(f"{name}: {array} differs at the end")


@contextlib.contextmanager
def simulated(seed: str, device: str) -> Iterator[None]:
    """A context with the clock and the order of completion of a seed: that of the CPU's queues, or of the simulated driver."""
    clock = Clock(random.Random(seed))
    with mock.patch.object(hybrid.engine.schedule, "time", clock):
        if device == "cpu":
            with ordered(seed):
                yield
        else:  # the thread that owns a GPU waits for the CPU's queues too: they have threads of their own
            cudasim.seed(random.Random(seed).getrandbits(32))
            yield
            if problems := cudasim.problems():
                raise Differs(f"{seed}: the driver found {problems}")


def _overlapped(case: Case, say: Any) -> Iterator[tuple[int, Outcome]]:
    """One run from beginning to end."""
    yield case.ticks, _one_run(case, Way(3, True))


def _ordeal(case: Case, say: Any) -> Iterator[tuple[int, Outcome]]:
    """Left, saved, resumed, copied, asked, interrupted and broken."""
    with tempfile.TemporaryDirectory(prefix="soak-") as folder:
        ordeal = Ordeal(case, Path(folder))
        try:
            found = ordeal.run()
        except BaseException as failure:
            failure.add_note("\n".join(ordeal.log))
            raise
        for line in ordeal.log:
            say(f"    {line}")
        yield ordeal.done, found


def _ranked(case: Case, say: Any) -> Iterator[tuple[int, Outcome]]:
    """Shared by ranks, each of which gets the numbers of one process."""
    if case.ranks:
        way = Way.drawn(random.Random(f"ranks {case.seed}"))
        for found in ranks.run(case.ranks, f"ranks {case.seed}", lambda group: _one_run(case, way, group)):
            yield len(found.ticks), found


def _one_run(case: Case, way: Way, group: Any = None) -> Outcome:
    model = case.make(way, group)
    ticks = dict(case.run(model, case.feed()))
    return Outcome(ticks, case.held(model))


WAYS: dict[str, Callable[[Case, Any], Iterator[tuple[int, Outcome]]]] = {
    "overlapped": _overlapped,
    "ranks": _ranked,
    "ordeal": _ordeal,
}
