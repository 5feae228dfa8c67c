"""A hybrid language model: trunk on the GPU, rows and tree on the CPU, overlapped beside every stage in turn."""

import itertools
from collections.abc import Callable, Iterator
from functools import partial

import numpy as np

from bench.gpu.machine import Machine
from bench.harness.measure import Work, measure
from bench.step.language import ZipfFeed
from bench.step.overlap import balanced, facts, make_engine

CLASSES, BATCH, MICRO, TICKS = 1_000_000, 8192, 8, 20
QUICK = (500, 64, 2, 2)
WARM = 6  # ticks
COPIES = ("x in", "hidden out", "grad in", "x_grad out")


class Hybrid:
    """The contest of one delay."""

    def __init__(self, machine: Machine, sizes: tuple[int, int, int, int], delay: int, threads: int):
        self.machine, self.delay, self.threads = machine, delay, threads
        classes, batch, self.micro, self.ticks = sizes
        self.feed = ZipfFeed(classes, batch)
        self.hidden = balanced(self.feed, self.micro, threads, "cuda:0")

    def records(self, repeat: int) -> list[dict]:
        """Ours first, then the same stages in turn; with what the timeline says of each."""
        rivals = [self._work(who, overlap) for who, overlap in (("ours", None), ("in turn", False))]
        records = measure([work for work, _ in rivals], repeat)
        return [self._more(record, engine) for record, (_, engine) in zip(records, rivals, strict=True)]

    def _work(self, who: str, overlap: bool | None):
        engine = make_engine(self.feed, self.hidden, self.micro, self.delay, overlap, self.threads, "cuda:0")
        running = engine.run(self.feed)
        losses: list[float] = []

        def step():
            losses.extend(tick.loss for tick in itertools.islice(running, self.ticks))

        def check():
            if not np.isfinite(losses).all():
                raise AssertionError(f"losses {losses}")
            for _ in range(WARM):
                next(running)
            engine.trace.clear()

        params = {"classes": self.feed.classes, "batch": self.feed.batch, "micro_batches": self.micro}
        params |= {"hidden": self.hidden, "delay": self.delay}
        work = ("overlap.tick", who, params, self.ticks * self.feed.batch, "examples/s", step, check)
        return Work(*work, threads=self.threads, device=self.machine.name), engine

    def _more(self, record: dict, engine) -> dict:
        found = facts(engine)
        copies = sum(found["stages"].get(name, 0.0) for name in COPIES) / sum(found["stages"].values())
        record["env"] |= self.machine.facts
        return record | found | {"copies": copies}


def overlap(machine: Machine, quick: bool, threads: int) -> Iterator[Callable[[], Hybrid]]:
    """What makes the contests of delay 0 and 1."""
    for delay in (0, 1):
        yield partial(Hybrid, machine, QUICK if quick else (CLASSES, BATCH, MICRO, TICKS), delay, threads)
