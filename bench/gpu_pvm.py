"""Frames per second of the Predictive Vision Model on a GPU, through `PVM.run`; the flat layer beside PyTorch.

A frame is what it is on the CPU (bench/pvm.py): a byte image sent while the device works on the one before, learning, the
error home. "tick alone" launches nothing but the kernels, of a tick that learns, without frames: what `run` costs is the
difference. What the stages of a run take is in its record. A sample lasts some tenths of a second, after frames that do not
count and bring the clocks up.

On a first contact (FIRST) the ways between which we choose come first: matrices through a ring in shared memory or not, blocks
in clusters or not, each with a run beside the tick alone. PyTorch is the last.
"""

import functools
import time
from collections.abc import Callable, Iterator
from functools import cached_property, partial
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np

from bench import pvm
from bench.gpu_clocks import Clocks, spread
from bench.gpu_machine import FIRST, Machine
from bench.measure import Work, measure
from hybrid.engine.trace import Trace
from hybrid.processors import available

FRAMES, QUICK = {"flat210m": 300, "small": 1000} if FIRST else {"flat210m": 600, "small": 2000}, 2
THREADS = min(4, available())  # of the host, that make the result of a complete frame
EXACT = 2  # frames of PyTorch before and in the sample that is checked: sums in another order drift apart
SPIN = 6  # of a sample's frames the sixth part goes before it
CASES = (
    pvm.Case("flat210m", momentum=0.0),
    pvm.Case("flat210m", momentum=0.5),
    pvm.Case("small"),
    pvm.Case("small", readouts=True),
    pvm.Case("small", streams=16),
)


class Sample:
    """`run` of a Work with a clock of its own: the seconds of some frames, after some that do not count.

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
    """The contest of one case; nothing is measured before the recording of the original agrees."""

    def __init__(self, machine: Machine, case: pvm.Case, frames: int):
        machine.release()
        self.machine, self.case, self.frames = machine, case, frames
        self.model = pvm.Ours(case, "cuda:0", THREADS)

    def once(self) -> None:
        """A few frames of ours, checked."""
        self.model.learn(QUICK)
        self.model.check()

    def records(self, repeat: int) -> list[dict]:
        """Check and measure; one record a rival."""
        _replay()
        works = self.works()
        records = measure(works, repeat, self.machine.bandwidth)  # which leaves those out that fail
        for record, work in zip(records, works, strict=True):
            record["env"] |= self.machine.facts
            if isinstance(work.run, Sample):
                record["clocks"] = spread(work.run.readings)
        return records

    def works(self) -> list[Work]:
        """Ours first, then the tick alone, then PyTorch."""
        torch = [self._torch()] if self.machine.torch and self.case.config == "flat210m" else []
        return [self._run(), self._alone(), *torch]

    def _work(
        self,
        who: str,
        steps: Callable[[int], Any],
        check: Callable,
        more: dict | None = None,
        first: Callable[[], Any] = lambda: None,
    ) -> Work:
        """See Sample."""
        params, moved = self.case._asdict() | self._way(), self.model.moved * self.frames
        sample = Sample(steps, self.frames, self.machine.clocks, first)
        work = ("pvm.frame", who, params, self.frames, "frames/s", sample, check)
        settings: dict[str, Any] = {"own_clock": True, "device": self.machine.name, "more": more or {}}
        return Work(*work, moved=moved, threads=THREADS, **settings)

    def _way(self) -> dict[str, bool]:
        """What a record says of how the kernels work, where that was chosen."""
        return {}

    def _run(self) -> Work:
        model, stages = self.model, {}  # type: ignore[var-annotated]
        more = {"parameters": model.parameters, "memory_over_least": model.held(), "stages": stages}

        def steps(count):
            model.learn(count)
            stages.update(_stages(model.pvm.trace))

        return self._work("ours", steps, model.check, more, lambda: model.pvm.trace.clear())

    def _alone(self, first: Callable[[], Any] = lambda: None) -> Work:
        """The kernels on a slot that is filled once, launched again and again by one piece of work.

        first  is called before each sample
        """
        model, before = self.model.pvm, self.model.sample()
        slot, queue = model.pipeline.slot(), model.pipeline.inline
        # Before, nothing is learned: half of the bytes stay where they are
        tick = max(model.tick, model.layout.steps)
        slot.fill(tick, 0, pvm.frame_input(model, self.model.feed, tick), 0, self.case.streams)

        def loop(count):
            for _ in range(count):
                model.pipeline.tick(slot)
                slot.tick += 1

        def steps(count):
            queue.run(loop, count).wait()

        def check():
            steps(model.layout.steps + 1)  # first matrices learn from the frame so many ticks ago
            if np.array_equal(before, self.model.sample()):
                raise ValueError(f"{self.case}, tick alone: nothing was learned")

        def ready():
            model.settle()  # what a run has begun is no part of it
            first()

        return self._work("ours, tick alone", steps, check, None, ready)

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
    """Microseconds a frame of each stage of a run, and of the wait for all of them."""
    found = trace.summary()
    ticks = max(found["ticks"], 1)
    return {name: 1e6 * seconds / ticks for name, seconds in (found["stages"] | {"wall": found["wall"]}).items()}


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
        return pvm.Ours(self.case(0.0), "cuda:0", THREADS)

    def case(self, momentum: float) -> pvm.Case:
        """Of the flat layer."""
        return pvm.Case(pvm.TINY["name"] if self.quick else "flat210m", momentum=momentum)

    def contests(self) -> Iterator[Callable[[], Video]]:
        """The most valuable first; each may fail alone."""
        flat, other = self.case(0.0), self.case(0.5)
        yield lambda: Alone(self, flat, self.flat)
        yield lambda: Beside(self, flat, self.flat, self.ring)
        fast = pvm.Ours(other, "cuda:0", THREADS)
        yield lambda: Alone(self, other, fast)
        yield lambda: Beside(self, other, fast, self.ring)
        small = pvm.Case(pvm.TINY["name"] if self.quick else "small")
        for ring in (False, True):
            yield partial(self._small, small, ring)
        if self.machine.torch and not self.quick:
            yield lambda: Rival(self, flat, self.flat, self.ring)

    def _small(self, case: pvm.Case, ring: bool) -> "Beside":
        return Beside(self, case, pvm.Ours(case, "cuda:0", THREADS), ring, ring)  # clusters want a ring


class Chosen(Video):
    """A run of ours, its kernels as they are chosen; as today where the device has no choice.

    Graphs of a run are recorded with the kernels of its first frames, so a way is chosen before them.
    """

    def __init__(self, first: First, case: pvm.Case, model: pvm.Ours, ring: bool, clusters: bool | None = None):
        first.machine.release()
        self.first, self.machine, self.case, self.model = first, first.machine, case, model
        self.frames = QUICK if first.quick else FRAMES[case.config]
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
        work = self._alone(lambda: self.choose(ring))
        work.who += f", {'' if ring else 'no '}ring"
        return work


class Beside(Chosen):
    """A run of ours, and the tick alone in the same way: what is the device's part of a frame, and what the host's."""

    def works(self) -> list[Work]:
        """The run first."""
        return [self._run(), self._alone()]


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
