"""Frames per second of the Predictive Vision Model on a GPU, through `PVM.run`; the flat layer beside PyTorch.

A frame is what it is on the CPU (bench/pvm.py): a byte image sent while the device works on the one before, learning, the
error home. "tick alone" launches nothing but the kernel, without frames: what `run` costs is the difference. A sample lasts
some tenths of a second, after frames that do not count and bring the clocks up.
"""

import functools
import time
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

from bench import pvm
from bench.gpu_clocks import spread
from bench.gpu_machine import Machine
from bench.measure import Work, measure

FRAMES, QUICK = {"flat210m": 600, "small": 2000}, 2
SPIN = 6  # of a sample's frames the sixth part goes before it
CASES = (
    pvm.Case("flat210m", momentum=0.0),
    pvm.Case("flat210m", momentum=0.5),
    pvm.Case("small"),
    pvm.Case("small", readouts=True),
    pvm.Case("small", streams=16),
)


class Video:
    """The contest of one case; nothing is measured before the recording of the original agrees."""

    def __init__(self, machine: Machine, case: pvm.Case, frames: int):
        machine.release()
        self.machine, self.case, self.frames = machine, case, frames
        self.readings: list[list[dict[str, int]]] = []
        self.model = pvm.Ours(case, "cuda:0", 1)

    def once(self) -> None:
        """A few frames of ours, checked."""
        self.model.learn(QUICK)
        self.model.check()

    def records(self, repeat: int) -> list[dict]:
        """Ours first, then the tick alone, then PyTorch."""
        _replay()
        works = [self._run(), self._alone()]
        if self.machine.torch and self.case.config == "flat210m":
            works.append(self._torch())
        records = measure(works, repeat, self.machine.bandwidth)
        for record, readings in zip(records, self.readings, strict=True):
            record["env"] |= self.machine.facts
            record["clocks"] = spread(readings)
        return records

    def _work(self, who: str, steps: Callable[[int], Any], check: Callable, more: dict | None = None) -> Work:
        """steps(n) takes n frames, and is complete when it returns."""
        params, moved = self.case._asdict(), self.model.moved * self.frames
        readings: list[dict[str, int]] = []
        self.readings.append(readings)

        def sample() -> float:
            steps(self.frames // SPIN)
            with self.machine.clocks.read(readings):
                began = time.perf_counter()
                steps(self.frames)
                return time.perf_counter() - began

        work = ("pvm.frame", who, params, self.frames, "frames/s", sample, check)
        return Work(*work, moved=moved, own_clock=True, device=self.machine.name, more=more or {})

    def _run(self) -> Work:
        model = self.model
        more = {"parameters": model.parameters, "memory_over_least": model.held()}

        return self._work("ours", model.learn, model.check, more)

    def _alone(self) -> Work:
        """The kernel on a slot that is filled once, launched again and again by one piece of work."""
        model = self.model.pvm
        slot, queue = model.pipeline.slot(), model.pipeline.inline
        slot.fill(model.tick, 0, pvm.frame_input(model, self.model.feed), 0, self.case.streams)

        def loop(count):
            for _ in range(count):
                model.pipeline.tick(slot)
                slot.tick += 1

        return self._work("ours, tick alone", lambda count: queue.run(loop, count).wait(), lambda: None)

    def _torch(self) -> Work:
        rival, cuda = pvm.Torch(self.case, "cuda:0"), self.machine.torch.cuda

        def steps(count):
            for _ in range(count):
                rival.step()
            cuda.synchronize()

        return self._work(rival.who, steps, rival.check)


@functools.cache
def _replay() -> None:
    print(f"golden: {pvm.golden('cuda:0')}", flush=True)


def frames(machine: Machine, quick: bool) -> Iterator[Callable[[], Video]]:
    """What makes the contests; the first measures nothing before the recording has been replayed on the device."""
    for case in pvm.cases(quick) if quick else CASES:
        yield partial(Video, machine, case, QUICK if quick else FRAMES[case.config])
