"""Frames per second of the Predictive Vision Model on a GPU, through `PVM.run`; the flat layer against PyTorch.

A frame is the same as on the CPU (bench/step/pvm.py): a byte image copied while the device computes the previous one, learning,
the error copied back. "tick alone" launches only the kernels of a training tick, without frames: the difference is the cost of
`run`. The record has the time of each stage of a run. A sample lasts some tenths of a second, after uncounted frames that ramp
up the clocks.
"""

import functools
import time
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import numpy as np

from bench.gpu.machine import Clocks, Machine, clock_spread
from bench.harness.measure import FIRST, Work, measure
from bench.step import pvm
from hybrid.machine import available
from hybrid.schedule.trace import Trace

FRAMES, QUICK = {"flat210m": 300, "small": 1000} if FIRST else {"flat210m": 600, "small": 2000}, 2
THREADS = min(4, available())  # on the host, for the result of a complete frame
EXACT = 2  # frames of PyTorch before and in the checked sample: sums in another order drift apart
SPIN = 6  # a sample is preceded by a sixth of its frames
CASES = (
    pvm.Case("flat210m", momentum=0.0),
    pvm.Case("flat210m", momentum=0.5),
    pvm.Case("small"),
)


class Sample:
    """The `run` of a Work with its own clock: the seconds of some frames, after some uncounted ones.

    steps     steps(n) takes n frames, and is complete when it returns
    first     is called before
    readings  of the device's clocks
    """

    def __init__(self, steps: Callable[[int], Any], frames: int, clocks: Clocks, first: Callable[[], Any]):
        self._steps, self._frames, self._clocks, self._first = steps, frames, clocks, first
        self.readings: list[dict[str, int]] = []

    def __call__(self) -> float:
        self._first()
        self._steps(self._frames // SPIN)
        with self._clocks.read(self.readings):
            began = time.perf_counter()
            self._steps(self._frames)
            return time.perf_counter() - began


class Video:
    """The contest of one case; nothing is measured before a tick agrees with float64.

    model   of the case, if it exists already
    beside  PyTorch instead of the tick alone
    """

    def __init__(
        self, machine: Machine, case: pvm.Case, frames: int, model: pvm.Ours | None = None, beside: bool = False
    ):
        machine.release()
        self.machine, self.case, self.frames, self.beside = machine, case, frames, beside
        self.model = model or pvm.Ours(case, "cuda:0", THREADS)

    def once(self) -> None:
        """Takes a few checked frames of ours."""
        self.model.learn(QUICK)
        self.model.check()

    def records(self, repeat: int) -> list[dict]:
        """Checks and measures; returns one record per rival."""
        _checked()
        works = self.works()
        records = measure(works, repeat, self.machine.bandwidth)  # leaves out rivals that fail
        for record, work in zip(records, works, strict=True):
            record["env"] |= self.machine.facts
            if isinstance(work.run, Sample):
                record["clocks"] = clock_spread(work.run.readings)
        return records

    def works(self) -> list[Work]:
        """Returns our run and the tick alone, which separates the device's part of a frame from the host's; or PyTorch."""
        return [self._run(), self._torch() if self.beside else self._alone()]

    def _work(
        self,
        who: str,
        steps: Callable[[int], Any],
        check: Callable,
        more: dict | None = None,
        first: Callable[[], Any] = lambda: None,
    ) -> Work:
        """Returns a work measured by `Sample`."""
        params, moved = self.case._asdict(), self.model.moved * self.frames
        sample = Sample(steps, self.frames, self.machine.clocks, first)
        work = ("pvm.frame", who, params, self.frames, "frames/s", sample, check)
        settings: dict[str, Any] = {"own_clock": True, "device": self.machine.name, "more": more or {}}
        return Work(*work, moved=moved, threads=THREADS, **settings)

    def _run(self) -> Work:
        model, stages = self.model, {}  # type: ignore[var-annotated]
        more = {"parameters": model.parameters, "memory_over_least": model.held(), "stages": stages}

        def steps(count):
            model.learn(count)
            stages.update(_stages(model.pvm.trace))

        return self._work("ours", steps, model.check, more, lambda: model.pvm.trace.clear())

    def _alone(self) -> Work:
        """Returns the kernels on a slot that is filled once, launched repeatedly by one piece of work."""
        model, before = self.model.pvm, self.model.sample()
        slot, queue = model.pipeline.slot(), model.pipeline.inline
        # Earlier ticks learn nothing and update only half of the bytes
        tick = max(model.tick, model.layout.steps)
        slot.fill(tick, 0, pvm.frame_input(model, self.model.feed, tick), 0, self.case.streams)

        def loop(count):
            for _ in range(count):
                model.pipeline.tick(slot)
                slot.tick += 1

        def steps(count):
            queue.run(loop, count).wait()

        def check():
            steps(model.layout.steps + 1)  # first matrices learn from the frame this many ticks ago
            if np.array_equal(before, self.model.sample()):
                raise ValueError(f"{self.case}, tick alone: nothing was learned")

        # Excludes work that a run has left in flight
        return self._work("ours, tick alone", steps, check, None, model.settle)

    def _torch(self) -> Work:
        rival, cuda, checked = pvm.Torch(self.case, "cuda:0"), self.machine.torch.cuda, []  # type: ignore[var-annotated]

        def steps(count):
            for _ in range(count if checked else EXACT):
                rival.step()
            cuda.synchronize()

        def check():
            rival.check()
            checked.append(True)

        return self._work(rival.who, steps, check)


def _stages(trace: Trace) -> dict[str, float]:
    """Returns microseconds per frame of each stage of a run, and of the wait for all of them."""
    found = trace.summary()
    ticks = max(found["ticks"], 1)
    return {name: 1e6 * seconds / ticks for name, seconds in (found["stages"] | {"wall": found["wall"]}).items()}


_checked = functools.cache(lambda: pvm.check_tick("cuda:0"))


def frames(machine: Machine, quick: bool) -> Iterator[Callable[[], Video]]:
    """Yields factories of the contests, the most valuable first, PyTorch with the flat layer last. Each may fail alone."""
    cases = pvm.cases(quick) if quick else CASES
    flat = functools.cache(lambda: pvm.Ours(cases[0], "cuda:0", THREADS))  # drawn once, which takes seconds
    count = {case: QUICK if quick else FRAMES[case.config] for case in cases}
    yield lambda: Video(machine, cases[0], count[cases[0]], flat())
    for case in cases[1:]:
        yield partial(Video, machine, case, count[case])
    if machine.torch and not quick:
        yield lambda: Video(machine, cases[0], count[cases[0]], flat(), beside=True)
