"""Stages of a language model's step, on the ranks of this run at once; all of them call it, and rank 0 knows the figures."""

import itertools
import time
from collections.abc import Iterator
from typing import Any

import numpy as np

from bench.language import CONTEXT, HIDDEN, OUTPUTS, WIDTH, ZipfFeed, make_engine
from hybrid.engine import Engine
from hybrid.ranks.group import Group

STAGES = ("gather", "forward", "readout", "backward", "update", "scatter")
SIZES = {"width": OUTPUTS, "inputs": CONTEXT * WIDTH}
TRUNK = HIDDEN * (CONTEXT * WIDTH + 1) + OUTPUTS * (HIDDEN + 1)


def stages(batches: list[int], classes: int, ticks: int) -> list[dict[str, Any]]:
    """Mean seconds of each stage of a step on batches of some sizes, of the whole step ("wall"), and of what is
    in no stage ("rest"); nothing is exchanged.
    """
    group, found = Group(), []
    for batch in batches:
        engine, running = _running(batch, classes, overlap=False)
        for _ in itertools.islice(running, 3):
            pass
        engine.trace.clear()
        group.barrier()
        for _ in itertools.islice(running, ticks):
            pass
        facts = engine.trace.summary()
        del running, engine
        count = max(facts["ticks"], 1)
        took = {name: facts["stages"][name] / count for name in STAGES}
        wall = facts["wall"] / count
        found.append({"batch": batch, "wall": wall, **took, "rest": max(wall - sum(took.values()), 1e-7)})
    return found


def steps(batch: int, classes: int, micro_batches: int, ticks: int, repeat: int) -> list[float]:
    """Samples of the seconds of a step of all ranks, which share the trunk; each the mean of some ticks."""
    group, samples = Group(), np.empty(repeat)
    _, running = _running(batch, classes, micro_batches=micro_batches, ranks=group if group.size > 1 else None)
    for sample in range(-1, repeat):  # the first warms up
        group.barrier()
        start = time.perf_counter()
        for _ in itertools.islice(running, ticks):
            pass
        if sample >= 0:
            samples[sample] = (time.perf_counter() - start) / ticks
    group.most(samples)
    found: list[float] = samples.tolist()
    return found


def _running(batch: int, classes: int, micro_batches: int = 1, **options: Any) -> tuple[Engine, Iterator[Any]]:
    """An engine on one thread, and its ticks."""
    feed = ZipfFeed(classes, batch)
    engine = make_engine(feed, "tree", 1, micro_batches=micro_batches, **options)
    return engine, engine.run(feed)
