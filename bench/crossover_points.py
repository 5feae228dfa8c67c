"""Which sizes `bench crossover` measures, whom at each, and how long that takes: few points, so that all of it takes minutes.

One row of points goes through all classes, at each batch; others leave it to the smallest and the largest width. What takes
too long or does not fit is left out by name: how long a step takes is worked out here, from figures of a slow core.
"""

from collections.abc import Sequence
from typing import NamedTuple

from bench.crossover_costs import Size, amounts, memory

CLASSES = (1_000, 10_000, 100_000, 1_000_000, 10_000_000)
WIDTHS = (64, 128, 256, 512)
BATCHES = (64, 1024, 8192)
WIDTH, BATCH = 128, 1024  # of the row of points
LARGEST = Size(100_000_000, 64, BATCH)  # where the memory is there
OURS = ("full", "sampled", "head", "tree", "tree in batches")
THEIRS = ("torch full", "torch chunked", "torch adaptive")
WORKS = {"output": (*OURS, *THEIRS), "step": (*OURS, "tree overlapped", *THEIRS)}
LONGEST = 0.75  # seconds of a step: who takes longer is left out
SHARE = 0.5  # of the machine's memory, which all rivals of a contest may take
TURN = 0.05  # seconds of a turn, of so many steps

# Seconds of one of each amount on one slow core, to plan with; the model that is fitted knows nothing of them
CORE = {
    "operations": 1 / 80e9,
    "trunk operations": 1 / 60e9,
    "logits": 2e-9,
    "weights": 1.2e-9,
    "nodes": 2e-8,
    "numbers": 3e-10,
    "missed numbers": 1e-9,
    "rows": 2e-9,
    "examples": 1e-6,
}
LAUNCH = 2e-4  # seconds of a batch, on any number of cores
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
    """How long a step is taken to be, to plan with."""
    parts = dict(amounts(contender, point.work, point.size))
    return parts.pop("batches") * LAUNCH + sum(CORE[name] * amount for name, amount in parts.items()) / point.threads


def left_out(contender: str, point: Point, available: float) -> str | None:
    """Why a contender is not measured at a point, where it is not; available: bytes of the machine's memory."""
    if contender == "tree overlapped" and point.threads == 1:
        return "one thread has nothing to overlap"
    if (held := memory(contender, point.work, point.size)) > SHARE * available:
        return f"it takes {held / 1e9:.3g} GB, of {available / 1e9:.3g}"
    if (needed := seconds(contender, point)) > LONGEST:
        return f"a step is taken to last {needed:.2g} s"
    return None


def contests(point: Point, contenders: Sequence[str], available: float) -> list[list[str]]:
    """Who takes turns with whom at a point: all of them, where the memory suffices, else in several contests."""
    found: list[list[str]] = []
    room = 0.0
    for one in contenders:
        held = memory(one, point.work, point.size)
        if not found or held > room:
            found.append([])
            room = SHARE * available
        found[-1].append(one)
        room -= held
    return found


def duration(point: Point, contenders: Sequence[str]) -> float:
    """Seconds that a point takes, about."""
    ready = READY + READY_CLASS * point.size.classes
    turns = sum(max(TURN, seconds(one, point)) + WAITED for one in contenders)
    return ready * len(contenders) + TURNS * turns
