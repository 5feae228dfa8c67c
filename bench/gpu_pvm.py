"""Frames per second of the Predictive Vision Model on a GPU, through `PVM.run`; the flat layer beside PyTorch.

A frame is what it is on the CPU (bench/pvm.py): a byte image sent while the device works on the one before, learning, the
error home. "tick alone" launches nothing but the kernel, without frames: what `run` costs is the difference. A sample lasts
some tenths of a second, after frames that do not count and bring the clocks up.

On a first contact (FIRST) the ways between which we choose come first: matrices through a ring in shared memory or not, blocks
in clusters or not, threads that sleep or spin while they wait for the device. PyTorch is the last.
"""

import functools
import time
from collections.abc import Callable, Iterator
from functools import cached_property, partial
from typing import Any
from weakref import WeakKeyDictionary

from bench import pvm
from bench.gpu_clocks import spread
from bench.gpu_machine import FIRST, Machine
from bench.measure import Work, measure

FRAMES, QUICK = {"flat210m": 300, "small": 1000} if FIRST else {"flat210m": 600, "small": 2000}, 2
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
        """Check and measure; one record a rival."""
        _replay()
        works = self.works()
        records = measure(works, repeat, self.machine.bandwidth)
        for record, readings in zip(records, self.readings, strict=True):
            record["env"] |= self.machine.facts
            record["clocks"] = spread(readings)
        return records

    def works(self) -> list[Work]:
        """Ours first, then the tick alone, then PyTorch."""
        torch = [self._torch()] if self.machine.torch and self.case.config == "flat210m" else []
        return [self._run(), self._alone(), *torch]

    def _work(self, who: str, steps: Callable[[int], Any], check: Callable, more: dict | None = None) -> Work:
        """steps(n) takes n frames, and is complete when it returns."""
        params, moved = self.case._asdict() | self._way(), self.model.moved * self.frames
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

    def _way(self) -> dict[str, bool]:
        """What a record says of how the kernels work, where that was chosen."""
        return {}

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
    try:
        print(f"golden: {pvm.golden('cuda:0')}", flush=True)
    except Exception as error:
        if not FIRST:
            raise
        print(f"golden: FAILED {type(error).__name__}: {error}; measured nevertheless", flush=True)


# A first contact


class First:
    """Contests of a first contact: the models that they share, and the way that was found to be the faster."""

    def __init__(self, machine: Machine, quick: bool):
        self.machine, self.quick, self.ring = machine, quick, True
        self.tables: WeakKeyDictionary[pvm.Ours, dict] = WeakKeyDictionary()  # of plans, by way

    @cached_property
    def flat(self) -> pvm.Ours:
        """Drawn once: that takes seconds."""
        return pvm.Ours(self.case(0.0), "cuda:0", 1)

    def case(self, momentum: float) -> pvm.Case:
        """Of the flat layer."""
        return pvm.Case(pvm.TINY["name"] if self.quick else "flat210m", momentum=momentum)

    def contests(self) -> Iterator[Callable[[], Video]]:
        """The most valuable first; each may fail alone."""
        flat, other = self.case(0.0), self.case(0.5)
        yield lambda: Alone(self, flat, self.flat)
        yield lambda: Chosen(self, flat, self.flat, self.ring)
        yield lambda: Chosen(self, other, pvm.Ours(other, "cuda:0", 1), self.ring)
        small = pvm.Case(pvm.TINY["name"] if self.quick else "small")
        for clusters in (False, True):
            yield partial(self._waits, small, clusters)
        if self.machine.torch and not self.quick:
            yield lambda: Rival(self, flat, self.flat, self.ring)

    def _waits(self, case: pvm.Case, clusters: bool) -> "Waits":
        return Waits(self, case, pvm.Ours(case, "cuda:0", 1), True, clusters)


class Chosen(Video):
    """A run of ours, its kernels as they are chosen; as today where the device has no choice.

    Graphs of a run are recorded with the kernels of its first frames, so a way is chosen before them.
    """

    def __init__(self, first: First, case: pvm.Case, model: pvm.Ours, ring: bool, clusters: bool | None = None):
        first.machine.release()
        self.first, self.machine, self.case, self.model = first, first.machine, case, model
        self.frames = QUICK if first.quick else FRAMES[case.config]
        self.readings = []
        self.choose(ring, clusters)

    def works(self) -> list[Work]:
        """Ours alone."""
        return [self._run()]

    def choose(self, ring: bool, clusters: bool | None = None) -> None:
        """Set the kernels; clusters None: as they are. Each way has tables of its own, which graphs may go on using."""
        plan = self.model.pvm.pipeline.plan
        able = plan.device.capability >= (9, 0)
        plan.bulk = ring and able
        plan.clusters = plan.clusters if clusters is None else clusters and able
        tables = self.first.tables.setdefault(self.model, {})
        plan._ranges, plan._rings = tables.setdefault((plan.bulk, plan.clusters), ({}, {}))

    def _way(self) -> dict[str, bool]:
        plan = self.model.pvm.pipeline.plan
        return {"ring": plan.bulk, "clusters": plan.clusters}


class Alone(Chosen):
    """The tick alone with the ring and without; the faster way is that of the contests that follow."""

    def __init__(self, first: First, case: pvm.Case, model: pvm.Ours):
        super().__init__(first, case, model, True)

    def works(self) -> list[Work]:
        """Without the ring first."""
        return [self._alone_by(ring) for ring in (False, True)]

    def records(self, repeat: int) -> list[dict]:
        """Remember the faster."""
        records = super().records(repeat)
        self.first.ring = max(records, key=lambda record: record["value"])["params"]["ring"]
        return records

    def _alone_by(self, ring: bool) -> Work:
        self.choose(ring)
        work = self._alone()
        tick = work.run

        def run() -> float:
            self.choose(ring)
            seconds: float = tick()
            return seconds

        work.run, work.who = run, f"{work.who}, {'' if ring else 'no '}ring"
        return work


class Waits(Chosen):
    """A run of ours while threads sleep until the device is done, and one while they spin."""

    def works(self) -> list[Work]:
        """As today first; only that where a device knows one way to wait."""
        device = self.model.pvm.backend.device
        sleeping = (True, False) if hasattr(device, "sleeps") else (None,)
        return [self._run_by(device, sleeps) for sleeps in sleeping]

    def _run_by(self, device: Any, sleeps: bool | None) -> Work:
        work = self._run()
        if sleeps is None:
            return work
        frames = work.run

        def run() -> float:
            before, device.sleeps = device.sleeps, sleeps
            try:
                seconds: float = frames()
            finally:
                device.sleeps = before
            return seconds

        work.run, work.params = run, work.params | {"sleeps": sleeps}
        work.who += "" if sleeps else ", spinning"
        return work


class Rival(Chosen):
    """A run of ours beside PyTorch."""

    def works(self) -> list[Work]:
        """Ours first."""
        return [self._run(), self._torch()]


def frames(machine: Machine, quick: bool) -> Iterator[Callable[[], Video]]:
    """What makes the contests; the first measures nothing before the recording has been replayed on the device."""
    if FIRST:
        yield from First(machine, quick).contests()
        return
    for case in pvm.cases(quick) if quick else CASES:
        yield partial(Video, machine, case, QUICK if quick else FRAMES[case.config])
