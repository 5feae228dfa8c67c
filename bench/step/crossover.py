"""The crossover map: a training step of every output layer, alone and with a trunk, over classes, widths, batches and threads.

Only records come of it; `bench/report/sections/crossover.py` says who wins where. A step is one batch:
B examples with targets by Zipf's law, the gradient that goes back to their hidden vectors, and the update.
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
from bench.report.sections.crossover import BATCH, TOLD, WIDTH, Size
from bench.step import language, softmax, tree
from hybrid import SGD, Batched
from hybrid.machine import memory
from hybrid.readout import HeadReadout

# Which sizes are measured, whom at each, and how long that takes: few points, so that all of it takes minutes.
#
# One row of points goes through all classes, at each batch; others leave it to the smallest and the largest width. What takes
# too long or does not fit is left out by name: roughly, by the products of a dense layer on a slow core, and by its arrays.

TOGETHER = 64  # examples that learn at once at a node, in the mode "batch"
CHUNK_LOGITS = 3e8  # at most of what PyTorch has at once of a softmax in chunks, with their gradients


CLASSES = (1_000, 10_000, 100_000, 1_000_000, 10_000_000)
WIDTHS = (64, 128, 256, 512)
BATCHES = (64, 1024, 8192)
LARGEST = Size(100_000_000, 64, BATCH)  # where the memory is there
OURS = ("full", "sampled", "head", "tree", "tree in batches")
THEIRS = ("torch full", "torch chunked", "torch adaptive")
WORKS = {"output": (*OURS, *THEIRS), "step": (*OURS, "tree overlapped", *THEIRS)}
ONLY = (*WORKS, *dict.fromkeys(one for many in WORKS.values() for one in many))
DENSE = {
    "full": 1.0,
    "torch full": 1.0,
    "torch chunked": 1.0,
    "head": 0.1,
    "torch adaptive": 0.12,
}  # of 6 B V d operations
CORE = 80e9  # operations a second of a slow core
LONGEST = 0.75  # seconds of a step: who takes longer is left out
SHARE = 0.5  # of the machine's memory, which all rivals of a contest may take
TURN = 0.05  # seconds of a turn, of so many steps
READY, READY_CLASS = 0.5, 8e-7  # seconds to make a rival ready, and for each class
TURNS, WAITED = 10, 0.1  # with those that do not count or are taken again; seconds before each


class Point(NamedTuple):
    """A size at which rivals take turns; work: "output", a step of the output layer alone, or "step", with the trunk."""

    work: str
    size: Size
    threads: int


def points(quick: bool, threads: int) -> list[Point]:
    """All of them, small ones first; on all threads and on one."""
    if quick:
        sizes = [Size(1_000, 16, 32), Size(8_000, 32, 32), Size(1_000, 32, 64)]
        return [Point("output", size, threads) for size in sizes] + [Point("step", size, threads) for size in sizes[:2]]
    row = [Size(count, WIDTH, batch) for batch in BATCHES for count in CLASSES]
    row.remove(Size(CLASSES[-1], WIDTH, BATCHES[-1]))  # half a minute, to make it ready
    wide = [Size(count, width, BATCH) for width in WIDTHS if width != WIDTH for count in (10_000, 100_000, 1_000_000)]
    corners = [Size(1_000, 512, 64), Size(1_000, 64, 8192), LARGEST]
    alone = [Size(count, WIDTH, BATCH) for count in CLASSES[:4]]
    few = [Size(100_000, WIDTH, 64), Size(100_000, WIDTH, 8192), Size(10_000, 512, 64), Size(10_000, 64, BATCH)]
    steps = [*alone, Size(CLASSES[-1], WIDTH, BATCH), *few]
    found = [Point("output", size, threads) for size in (*row, *wide, *corners)]
    found += [Point("step", size, threads) for size in steps]
    if threads > 1:
        found += [Point("output", size, 1) for size in (*alone, *few)] + [Point("step", size, 1) for size in alone]
    return sorted(found, key=lambda point: point.size.classes * point.size.batch * point.size.width)


def seconds(contender: str, point: Point) -> float:
    """How long a step is taken to be: what is not dense takes no time that matters here."""
    V, d, B = point.size
    return DENSE.get(contender, 0.0) * 6.0 * B * V * d / (CORE * point.threads)


def left_out(contender: str, point: Point, available: float) -> str | None:
    """Why a contender is not measured at a point, where it is not; available: bytes of the machine's memory."""
    if contender == "tree overlapped" and point.threads == 1:
        return "one thread has nothing to overlap"
    if (taken := held(contender, point)) > SHARE * available:
        return f"it takes {taken / 1e9:.3g} GB, of {available / 1e9:.3g}"
    if (needed := seconds(contender, point)) > LONGEST:
        return f"a step is taken to last {needed:.2g} s"
    return None


def shared_out(point: Point, contenders: Sequence[str], available: float) -> list[list[str]]:
    """Who takes turns with whom at a point: all of them, where the memory suffices, else in several contests."""
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
    """Seconds that a point takes, about."""
    turns = sum(max(TURN, seconds(one, point)) + WAITED for one in contenders)
    return (READY + READY_CLASS * point.size.classes) * len(contenders) + TURNS * turns


def held(contender: str, point: Point) -> float:
    """Bytes that a contender holds at the peak of a step: its rows, PyTorch's with as large a gradient; and logits."""
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
}  # of a whole step
USUAL = softmax.WIDTH * softmax.BATCH  # numbers of a batch for which rates are chosen


def works(point: Point, contenders: Sequence[str], quick: bool) -> list[Work]:
    """Checked, and ready to take turns."""
    gc.collect()  # what the last point had
    numba.set_num_threads(point.threads)
    make: Callable[[str], Work] = (Output if point.work == "output" else Step)(point).work
    return [_named(point, one, _long(make(one), 0.0 if quick else TURN)) for one in contenders]


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
            readout = HeadReadout(counts, task.width, batch=task.batch, optimiser=SGD(task.rate))
            return task.learns(task.ours(readout))
        if contender == "torch adaptive":
            return task.torch_adaptive(softmax.cutoffs(task.classes), softmax.NARROWER)
        chunked = contender == "torch chunked"
        return task.torch(softmax.chunked(task.best_chunk()) if chunked else softmax.cross_entropy)

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
    """A whole step of `bench language`: rows, trunk and output layer; what is not overlapped is in turn on all threads."""

    def __init__(self, point: Point):
        self.point, self.feed = point, language.ZipfFeed(point.size.classes, point.size.batch)

    def work(self, contender: str) -> Work:
        """One rival."""
        threads, width = self.point.threads, self.point.size.width
        if contender in KINDS:
            return language.of_torch(self.feed, KINDS[contender], 1, threads, width)
        readout = contender.split()[0]
        settings = {"mode": Batched(TOGETHER)} if contender == "tree in batches" else {}
        overlap = contender == "tree overlapped"
        return language.ours(self.feed, readout, 1, threads, width, overlap, **settings)


UNKNOWN = 8e9  # bytes that a machine is taken to have which does not say


class Contest(NamedTuple):
    """Rivals who take turns; seconds: how long that takes, about; records: does it."""

    title: str
    seconds: float
    records: Callable[[], list[dict]]


def run(arguments) -> int:
    """Every contest, small ones first; --only: these works and contenders."""
    failed = hold([*contests(arguments)], arguments.json)
    if failed:
        print(f"{len(failed)} contests were not timed, since a result was wrong: {'; '.join(failed)}")
    return int(bool(failed))


def hold(todo: Sequence[Contest], path: str | None) -> list[str]:
    """One contest after another; records are kept as soon as they are there. Returns those of a wrong result."""
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
    """All that are to be held; says who is left out."""
    available = float(memory() or UNKNOWN)
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
    """The contenders that are wanted at a point: all, or those that are named, of the works that are named."""
    works, contenders = set(only) & set(WORKS), set(only) - set(WORKS)
    if works and point.work not in works:
        return []
    there = [one for one in WORKS[point.work] if not one.startswith("torch") or peer("torch")]
    return [one for one in there if not contenders or one in contenders]


def timed(point: Point, rivals: list[str], repeat: int, quick: bool) -> list[dict]:
    """The records of a contest."""
    return measure(works(point, rivals, quick), repeat)


def title(point: Point) -> str:
    """A point in words."""
    V, d, B = point.size
    return f"{TOLD[point.work]}, V {V:,}, d {d}, B {B:,}, {point.threads} threads"


def lines(records: list[dict]) -> Iterator[str]:
    """A contest, the fastest first."""
    for one in sorted(records, key=lambda record: -record["value"]):
        step = 1e3 * one["params"]["batch"] / one["value"]
        spread = f"+-{one['spread'] / 2:.0%}"
        yield f"  {one['contender']:<22} {one['value']:>12.4g} examples/s  {step:>10.4g} ms a step  {spread}"
