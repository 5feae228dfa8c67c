"""Which sizes `bench crossover` measures, whom at each, and how long that takes: few points, so that all of it takes minutes.

One row of points goes through all classes, at each batch; others leave it to the smallest and the largest width. What takes
too long or does not fit is left out by name: roughly, by the products of a dense layer on a slow core, and by its arrays.
"""

from collections.abc import Sequence
from typing import NamedTuple

CUTOFFS = (2_000, 20_000, 200_000)  # of the adaptive softmax
NARROWER = 4  # its div_value
TOGETHER = 64  # examples that learn at once at a node, in the mode "batch"
CHUNK_LOGITS = 3e8  # at most of what PyTorch has at once of a softmax in chunks, with their gradients


class Size(NamedTuple):
    """Classes V, width d of a hidden vector, examples B of a batch."""

    classes: int
    width: int
    batch: int


CLASSES = (1_000, 10_000, 100_000, 1_000_000, 10_000_000)
WIDTHS = (64, 128, 256, 512)
BATCHES = (64, 1024, 8192)
WIDTH, BATCH = 128, 1024  # of the row of points
LARGEST = Size(100_000_000, 64, BATCH)  # where the memory is there
OURS = ("full", "sampled", "head", "tree", "tree in batches")
THEIRS = ("torch full", "torch chunked", "torch adaptive")
WORKS = {"output": (*OURS, *THEIRS), "step": (*OURS, "tree overlapped", *THEIRS)}
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
    if (held := memory(contender, point)) > SHARE * available:
        return f"it takes {held / 1e9:.3g} GB, of {available / 1e9:.3g}"
    if (needed := seconds(contender, point)) > LONGEST:
        return f"a step is taken to last {needed:.2g} s"
    return None


def contests(point: Point, contenders: Sequence[str], available: float) -> list[list[str]]:
    """Who takes turns with whom at a point: all of them, where the memory suffices, else in several contests."""
    found: list[list[str]] = []
    room = 0.0
    for one in contenders:
        held = memory(one, point)
        if not found or held > room:
            found.append([])
            room = SHARE * available
        found[-1].append(one)
        room -= held
    return found


def duration(point: Point, contenders: Sequence[str]) -> float:
    """Seconds that a point takes, about."""
    turns = sum(max(TURN, seconds(one, point)) + WAITED for one in contenders)
    return (READY + READY_CLASS * point.size.classes) * len(contenders) + TURNS * turns


def cutoffs(classes: int) -> list[int]:
    """Where the bands of the adaptive softmax begin."""
    return [cut for cut in CUTOFFS if cut < classes] or [classes // 4]


def memory(contender: str, point: Point) -> float:
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
