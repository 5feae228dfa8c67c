"""The rivals of `bench crossover` on the CPU, at one size: as other benchmarks have them, each turn so many steps long."""

import functools
import gc
import time
from collections.abc import Callable, Sequence
from dataclasses import replace

import numba
import numpy as np

from bench import language, softmax, softmax_torch, tree
from bench.crossover_points import NARROWER, TOGETHER, TURN, Point, cutoffs
from bench.measure import Work
from bench.peers import peer
from bench.tree_task import RATE, WIDTH
from hybrid.readout import HeadReadout

KINDS = {
    "torch full": "softmax",
    "torch chunked": "softmax in chunks",
    "torch adaptive": "adaptive softmax",
}  # of a whole step
USUAL = softmax.WIDTH * softmax.BATCH  # numbers of a batch for which rates are chosen


def works(point: Point, contenders: Sequence[str], quick: bool) -> list[Work]:
    """Checked, and ready to take turns; contenders of PyTorch are left out where there is none."""
    gc.collect()  # what the last point had
    numba.set_num_threads(point.threads)
    there = [one for one in contenders if not one.startswith("torch") or peer("torch")]
    make: Callable[[str], Work] = (Output if point.work == "output" else Step)(point).work
    return [_named(point, one, _long(make(one), 0.0 if quick else TURN)) for one in there]


def _long(work: Work, turn: float) -> Work:
    """The same by turns of about so many seconds; what it does first is checked here."""
    work.run()
    work.check()
    begun = time.perf_counter()
    work.run()
    times = max(1, round(turn / (time.perf_counter() - begun)))
    once = work.run
    return replace(
        work, run=lambda: [once() for _ in range(times)], amount=times * work.amount, check=lambda: None, warm=0
    )


def _named(point: Point, contender: str, work: Work) -> Work:
    """Ours and PyTorch's have the sizes in common; which of ours it is, is a parameter."""
    params = point.size._asdict()
    if not contender.startswith("torch"):
        params = {"contender": contender} | params
    more = {"contender": contender}
    return replace(work, work=f"crossover.{point.work}", params=params, more=more, threads=point.threads)


class Output:
    """A step of the output layer alone: of given hidden vectors, with the gradient that goes back to them."""

    def __init__(self, point: Point):
        self.point = point

    def work(self, contender: str) -> Work:
        """One rival."""
        if contender.startswith("tree"):
            together = TOGETHER if contender == "tree in batches" else 1
            return tree.ours(self._tree, together, min(RATE, RATE * WIDTH / self.point.size.width))
        who = f"torch {peer('torch').__version__} {contender[6:]}" if contender.startswith("torch") else "ours"
        return self._dense.work("crossover.output", who, {}, self._rival(contender))

    def _rival(self, contender: str) -> softmax.Rival:
        task = self._dense
        if contender == "full":
            return task.full()
        if contender == "sampled":
            return task.sampled()
        if contender == "head":
            counts = np.maximum(1e9 / np.arange(1, task.classes + 1), 1).astype(np.int64)
            readout = HeadReadout(counts, task.width, batch=task.batch, rate=task.rate)
            return task.learns(task.ours(readout))
        if contender == "torch adaptive":
            return task.torch_adaptive(cutoffs(task.classes), NARROWER)
        chunked = contender == "torch chunked"
        return task.torch(softmax_torch.chunked(task.best_chunk()) if chunked else softmax_torch.cross_entropy)

    @functools.cached_property
    def _dense(self) -> softmax.Task:
        """With a rate that falls where more, or longer, vectors are summed."""
        classes, width, batch = self.point.size
        rate = softmax.RATE * min(1.0, USUAL / (width * batch))
        return softmax.Task(classes, batch, self.point.threads, width, rate)

    @functools.cached_property
    def _tree(self) -> tree.Task:
        """One for both trees: they learn the same nodes, in turns."""
        classes, width, batch = self.point.size
        return tree.Task(classes, self.point.threads, width, batch)


class Step:
    """A whole step of bench/language.py: rows, trunk and output layer; what is not overlapped is in turn on all threads."""

    def __init__(self, point: Point):
        self.point, self.feed = point, language.ZipfFeed(point.size.classes, point.size.batch)

    def work(self, contender: str) -> Work:
        """One rival."""
        threads, width = self.point.threads, self.point.size.width
        if contender in KINDS:
            return language.of_torch(self.feed, KINDS[contender], 1, threads, width)
        readout = contender.split()[0]
        settings = {"mode": "batch", "together": TOGETHER} if contender == "tree in batches" else {}
        overlap = contender == "tree overlapped"
        return language.ours(self.feed, readout, 1, threads, width, overlap, **settings)
