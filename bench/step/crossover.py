"""The crossover map: a training step of every output layer, alone and with a trunk, over classes, batches and threads.

It only writes records; `bench/report/sections/crossover.py` determines the winners. A step is one batch: B examples with
Zipf-distributed targets, the gradient of their hidden vectors, and the update.
"""

import functools
import gc
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import NamedTuple

import numba
import numpy as np

from bench.harness.measure import LEAST, Work, append, measure, peer
from bench.oracles.tree import RATE
from bench.report.sections.crossover import BATCH, PARTS, WIDTH, Size
from bench.step import language, softmax, tree
from hybrid import SGD
from hybrid.machine import memory
from hybrid.readout import HeadReadout

# The measured sizes, their contenders, and time estimates: few points, so that the whole map takes minutes. Points that take
# too long or do not fit are left out with a message. The estimates use a dense layer's products and arrays.

CHUNK_LOGITS = 3e8  # maximum number of logits with gradients that PyTorch's chunked softmax holds


CLASSES = (1_000, 10_000, 100_000, 1_000_000, 10_000_000)
BATCHES = (64, 1024, 8192)
OURS = ("full", "sampled", "head", "tree")
THEIRS = ("torch full", "torch chunked", "torch adaptive")
WORKS = {"output": (*OURS, *THEIRS), "step": (*OURS, "tree overlapped", *THEIRS)}
ONLY = (*WORKS, *dict.fromkeys(one for many in WORKS.values() for one in many))
DENSE = {
    "full": 1.0,
    "torch full": 1.0,
    "torch chunked": 1.0,
    "head": 0.1,
    "torch adaptive": 0.12,
}  # share of 6 B V d operations
CORE = 80e9  # operations a second of a slow core
LONGEST = 0.75  # maximum seconds of a step: slower contenders are left out
SHARE = 0.5  # share of the machine's memory for all rivals of a contest
TURN = 0.05  # seconds per turn of several steps
READY, READY_CLASS = 0.5, 8e-7  # seconds to prepare a rival, plus per class
TURNS, WAITED = 10, 0.1  # including uncounted and repeated turns; seconds before each


class Point(NamedTuple):
    """A size at which rivals take turns; work: "output", a step of the output layer alone, or "step", with the trunk."""

    work: str
    size: Size
    threads: int


def points(quick: bool, threads: int) -> list[Point]:
    """Returns all points, small ones first; on all threads and on one."""
    if quick:
        sizes = [Size(1_000, 16, 32), Size(8_000, 32, 32), Size(1_000, 32, 64)]
        return [Point("output", size, threads) for size in sizes] + [Point("step", size, threads) for size in sizes[:2]]
    row = [Size(count, WIDTH, batch) for batch in BATCHES for count in CLASSES]
    row.remove(Size(CLASSES[-1], WIDTH, BATCHES[-1]))  # takes half a minute to prepare
    usual = [Size(count, WIDTH, BATCH) for count in CLASSES]
    found = [Point("output", size, threads) for size in row] + [Point("step", size, threads) for size in usual]
    if threads > 1:
        found += [Point(work, size, 1) for work in WORKS for size in usual[:4]]
    return sorted(found, key=lambda point: point.size.classes * point.size.batch * point.size.width)


def seconds(contender: str, point: Point) -> float:
    """Estimates the seconds of a step; non-dense parts are neglected."""
    V, d, B = point.size
    return DENSE.get(contender, 0.0) * 6.0 * B * V * d / (CORE * point.threads)


def left_out(contender: str, point: Point, available: float) -> str | None:
    """Returns why a contender is not measured at a point, else None; available: bytes of the machine's memory."""
    if contender == "tree overlapped" and point.threads == 1:
        return "one thread has nothing to overlap"
    if (taken := held(contender, point)) > SHARE * available:
        return f"it takes {taken / 1e9:.3g} GB, of {available / 1e9:.3g}"
    if (needed := seconds(contender, point)) > LONGEST:
        return f"a step is taken to last {needed:.2g} s"
    return None


def shared_out(point: Point, contenders: Sequence[str], available: float) -> list[list[str]]:
    """Groups a point's contenders into contests: one if the memory suffices, else several."""
    found: list[list[str]] = []
    room = 0.0
    for one in contenders:
        taken = held(one, point)
        if not found or taken > room:
            found.append([])
            room = SHARE * available
        found[-1].append(one)
        room -= taken
    return found


def duration(point: Point, contenders: Sequence[str]) -> float:
    """Estimates the seconds of a point."""
    turns = sum(max(TURN, seconds(one, point)) + WAITED for one in contenders)
    return (READY + READY_CLASS * point.size.classes) * len(contenders) + TURNS * turns


def held(contender: str, point: Point) -> float:
    """Estimates a contender's peak bytes in a step: its rows, PyTorch's with a gradient of the same size; and logits."""
    V, d, B = point.size
    rows = 4.0 * V * d + 40.0 * V
    more = {
        "full": min(4.0 * B * V, 2.0**29),
        "torch full": 4.0 * V * d + 12.0 * B * V,
        "torch chunked": 4.0 * V * d + 8.0 * CHUNK_LOGITS,
        "torch adaptive": 1.5 * B * V,
        "sampled": 0.0,
        "head": 0.0,
    }.get(contender, 40.0 * B * d)  # a tree's 72 batches, see bench/step/tree.py
    return rows + more + (1024.0 * B + 256.0 * V) * (point.work == "step")


# Rivals

KINDS = {
    "torch full": "softmax",
    "torch chunked": "softmax in chunks",
    "torch adaptive": "adaptive softmax",
}  # readouts of a whole step
USUAL = softmax.WIDTH * softmax.BATCH  # numbers of a batch for which rates are tuned


def works(point: Point, contenders: Sequence[str], quick: bool) -> list[Work]:
    """Returns the checked and prepared rivals."""
    gc.collect()  # objects of the previous point
    numba.set_num_threads(point.threads)
    make: Callable[[str], Work] = (Output if point.work == "output" else Step)(point).work
    return [_named(point, one, _long(make(one), 0.0 if quick else TURN)) for one in contenders]


def _long(work: Work, turn: float) -> Work:
    """Returns the work with turns of about `turn` seconds; its first result is checked here."""
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
    """Gives ours and PyTorch's the same size parameters; for ours the contender is a parameter too."""
    params = point.size._asdict()
    if not contender.startswith("torch"):
        params = {"contender": contender} | params
    more = {"contender": contender}
    return replace(work, work=f"crossover.{point.work}", params=params, more=more, threads=point.threads)


class Output:
    """A step of the output layer alone: from given hidden vectors, with their gradient."""

    def __init__(self, point: Point):
        self.point = point

    def work(self, contender: str) -> Work:
        """Returns one rival."""
        if contender == "tree":
            return tree.ours(self._tree, min(RATE, RATE * WIDTH / self.point.size.width))
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
            readout = HeadReadout(counts, task.width, batch=task.batch, optimiser=SGD(task.rate))
            return task.learns(task.ours(readout))
        if contender == "torch adaptive":
            return task.torch_adaptive(softmax.cutoffs(task.classes), softmax.NARROWER)
        chunked = contender == "torch chunked"
        return task.torch(softmax.chunked(task.best_chunk()) if chunked else softmax.cross_entropy)

    @functools.cached_property
    def _dense(self) -> softmax.Task:
        """The task of dense contenders; its rate falls with the number and length of the summed vectors."""
        classes, width, batch = self.point.size
        rate = softmax.RATE * min(1.0, USUAL / (width * batch))
        return softmax.Task(classes, batch, self.point.threads, width, rate)

    @functools.cached_property
    def _tree(self) -> tree.Task:
        """The task of the tree."""
        classes, width, batch = self.point.size
        return tree.Task(classes, self.point.threads, width, batch)


class Step:
    """A whole step of `bench language`: rows, trunk and output layer; sequential on all threads unless overlapped."""

    def __init__(self, point: Point):
        self.point, self.feed = point, language.ZipfFeed(point.size.classes, point.size.batch)

    def work(self, contender: str) -> Work:
        """Returns one rival."""
        threads, width = self.point.threads, self.point.size.width
        if contender in KINDS:
            return language.of_torch(self.feed, KINDS[contender], 1, threads, width)
        overlap = contender == "tree overlapped"
        return language.ours(self.feed, contender.split()[0], 1, threads, width, overlap)


class Contest(NamedTuple):
    """Rivals that take turns; seconds: estimated duration; records: measures them."""

    title: str
    seconds: float
    records: Callable[[], list[dict]]


def run(arguments) -> int:
    """Runs every contest, small ones first; --only selects works and contenders."""
    failed = hold([*contests(arguments)], arguments.json)
    if failed:
        print(f"{len(failed)} contests were not timed, since a result was wrong: {'; '.join(failed)}")
    return int(bool(failed))


def hold(todo: Sequence[Contest], path: str | None) -> list[str]:
    """Runs the contests in order and appends their records immediately; returns those with a wrong result."""
    failed = []
    left, begun = sum(one.seconds for one in todo), time.perf_counter()
    print(f"crossover: {len(todo)} contests, about {left / 60:.0f} min", flush=True)
    for number, contest in enumerate(todo, 1):
        try:
            found = contest.records()
        except AssertionError as error:
            print(f"\nnot timed: {contest.title}: {error}", flush=True)
            failed.append(contest.title)
            found = []
        append(path, found)
        left -= contest.seconds
        spent = time.perf_counter() - begun
        print(
            f"\n{number} of {len(todo)}: {contest.title}; {spent:.0f} s, about {left:.0f} s left",
            *lines(found),
            sep="\n",
        )
    print(f"\nafter {time.perf_counter() - begun:.0f} s", flush=True)
    return failed


def contests(arguments) -> Iterator[Contest]:
    """Yields all contests; prints the contenders left out."""
    available = float(memory())
    repeat = arguments.repeat if arguments.quick else min(arguments.repeat, LEAST)
    for point in points(arguments.quick, arguments.threads):
        wanted = chosen(point, arguments.only or ())
        for one in list(wanted):
            if reason := left_out(one, point, available):
                wanted.remove(one)
                print(f"left out: {one} at {title(point)}: {reason}")
        for rivals in shared_out(point, wanted, available) if wanted else ():
            yield Contest(
                title(point),
                duration(point, rivals),
                functools.partial(timed, point, rivals, repeat, arguments.quick),
            )


def chosen(point: Point, only: Sequence[str]) -> list[str]:
    """Returns the contenders of a point selected by `only`: all, or the named ones, of all or the named works."""
    works, contenders = set(only) & set(WORKS), set(only) - set(WORKS)
    if works and point.work not in works:
        return []
    there = [one for one in WORKS[point.work] if not one.startswith("torch") or peer("torch")]
    return [one for one in there if not contenders or one in contenders]


def timed(point: Point, rivals: list[str], repeat: int, quick: bool) -> list[dict]:
    """Returns the records of a contest."""
    return measure(works(point, rivals, quick), repeat)


def title(point: Point) -> str:
    """Describes a point."""
    V, d, B = point.size
    return f"{PARTS[point.work]}, V {V:,}, d {d}, B {B:,}, {point.threads} threads"


def lines(records: list[dict]) -> Iterator[str]:
    """Yields the lines of a contest, the fastest first."""
    for one in sorted(records, key=lambda record: -record["value"]):
        step = 1e3 * one["params"]["batch"] / one["value"]
        spread = f"+-{one['spread'] / 2:.0%}"
        yield f"  {one['contender']:<22} {one['value']:>12.4g} examples/s  {step:>10.4g} ms a step  {spread}"
