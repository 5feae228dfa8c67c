"""Steps of a language model on the ranks of this run; all of them call it, and rank 0 knows the figures."""

import itertools
import time

import numpy as np

from bench.language import ZipfFeed, make_engine
from hybrid.ranks.group import Group


def steps(batch: int, classes: int, micro_batches: int, ticks: int, repeat: int) -> list[float]:
    """Samples of the seconds of a step of all ranks, which share the trunk; each the mean of some ticks."""
    group, samples, feed = Group(), np.empty(repeat), ZipfFeed(classes, batch)
    ranks = group if group.size > 1 else None
    running = make_engine(feed, "tree", 1, micro_batches=micro_batches, ranks=ranks).run(feed)
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
