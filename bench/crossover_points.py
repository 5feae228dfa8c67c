"""Which sizes `bench crossover` measures, whom at each, and how long that takes: few points, so that all of it takes minutes.

One row of points goes through all classes, at each batch; others leave it to the smallest and the largest width. What takes
too long or does not fit is left out by name: how long a step takes is worked out here, from figures of a slow core.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

Amounts = Mapping[str, float]
CACHE = 1 << 23  # bytes of nodes that are taken to stay in a core's cache from batch to batch; bench/NOTES.md
NEGATIVES = 1024  # of the sampled softmax
HEAD_SHARE = 0.1  # of a full softmax's time, by which the head's sizes are chosen: the default of HeadReadout
CHUNK, MOST_CHUNK = 64, 512  # examples whose logits PyTorch has at once, see bench/softmax_torch.py
LOGITS = 1.5e8  # at most of such a chunk, and twice: with their gradients
CUTOFFS = (2_000, 20_000, 200_000)  # of the adaptive softmax
NARROWER = 4  # its div_value
TOGETHER = 64  # examples that learn at once at a node, in the mode "batch"
CONTEXT, EMBEDDED, HIDDEN = 4, 64, 256  # the trunk of a whole step: words, their width, the hidden layer
EULER, STIELTJES = 0.57721566490153286, -0.07281584548367672


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


# What a step takes


def total(classes: float) -> float:
    """1 + 1/2 + ... + 1/classes."""
    return math.log(classes) + EULER + 1 / (2 * classes)


def share(first: float, last: float, classes: float) -> float:
    """How likely a class from behind `first` to `last` is, of so many."""
    return (total(last) - (total(first) if first else 0.0)) / total(classes)


def path(classes: float) -> float:
    """Nodes that an example meets in a Huffman tree: the entropy of a class in bits, which they exceed by a few hundredths."""
    log = math.log(classes)
    mean = (log**2 / 2 + STIELTJES + log / (2 * classes)) / total(classes)
    return (math.log(total(classes)) + mean) / math.log(2)


def beyond(classes: float, nodes: float) -> float:
    """How many of these lie behind the first `nodes` of the tree, breadth first: those at a depth of more than log2 `nodes`."""
    below = math.log(max(classes * total(classes) / nodes, 1.0))
    return below**2 / (2 * total(classes) * math.log(2))


def cutoffs(classes: int) -> list[int]:
    """Where the bands of the adaptive softmax begin."""
    return [cut for cut in CUTOFFS if cut < classes] or [classes // 4]


def amounts(contender: str, work: str, size: Size) -> Amounts:
    """What a step takes: of work "output" that of the output layer, of "step" with the trunk, of which there is one size."""
    found = dict(_AMOUNTS[contender](size))
    if work == "step":
        found["trunk operations"] = 6.0 * size.batch * HIDDEN * (CONTEXT * EMBEDDED + size.width)
    return found


def memory(contender: str, work: str, size: Size) -> float:
    """Bytes that a contender holds at the peak of a step."""
    rows = 4.0 * CONTEXT * EMBEDDED * size.batch + 4.0 * EMBEDDED * size.classes if work == "step" else 0.0
    return _MEMORY.get(contender, _nodes_memory)(size) + rows


def _dense(size: Size) -> Amounts:
    V, d, B = size
    return {"operations": 6.0 * B * V * d, "logits": float(B * V), "weights": float(V * d), "batches": 1.0}


def _adaptive(size: Size) -> Amounts:
    """A band's classes are met by the examples that are in it; all its weights have a gradient."""
    V, d, B = size
    cuts = cutoffs(V)
    rows, operations, weights = cuts[0] + len(cuts), 6.0 * B * d * (cuts[0] + len(cuts)), d * (cuts[0] + len(cuts))
    logits = float(B * rows)
    for number, (first, last) in enumerate(zip(cuts, [*cuts[1:], V], strict=True), 1):
        narrow, met = max(d // NARROWER**number, 1), B * share(first, last, V)
        operations += 6.0 * met * narrow * (d + last - first)
        weights += narrow * (d + last - first)
        logits += met * (last - first)
    return {"operations": operations, "logits": logits, "weights": float(weights), "batches": 1.0}


def _sampled(size: Size) -> Amounts:
    """Targets and negatives have rows; the negatives are shared by a batch."""
    V, d, B = size
    met = min(NEGATIVES, V)
    return {"operations": 6.0 * B * (met + 1) * d, "rows": float((B + met) * d), "examples": float(B), "batches": 1.0}


def _head(size: Size) -> Amounts:
    """Sizes are chosen so that a step takes this share of a full softmax's rows, where the root of V clusters leave that."""
    V, d, B = size
    rows = max(HEAD_SHARE * V, 2 * math.sqrt(V))
    return {"operations": 6.0 * B * rows * d, "logits": B * rows, "examples": float(B), "batches": 1.0}


def _tree(size: Size) -> Amounts:
    """Nodes of a path, their numbers, and the numbers that come from behind the cache."""
    V, d, B = size
    missed = beyond(V, CACHE / (4 * d))
    return {"nodes": B * path(V), "numbers": B * path(V) * d, "missed numbers": B * missed * d, "batches": 1.0}


_AMOUNTS: dict[str, Callable[[Size], Amounts]] = {
    "full": _dense,
    "torch full": _dense,
    "torch chunked": _dense,
    "torch adaptive": _adaptive,
    "sampled": _sampled,
    "head": _head,
    "tree": _tree,
    "tree in batches": _tree,
    "tree overlapped": _tree,
}


def _torch_memory(size: Size) -> float:
    """Weights and as large a gradient; logits twice."""
    return 8.0 * size.classes * size.width + 12.0 * size.batch * size.classes


def _chunked_memory(size: Size) -> float:
    chunk = min(max(CHUNK * size.classes, LOGITS), MOST_CHUNK * size.classes)
    return 8.0 * size.classes * size.width + 8.0 * chunk


def _rows_memory(size: Size) -> float:
    """Rows, and a few numbers a class."""
    return 4.0 * size.classes * size.width + 40.0 * size.classes


def _nodes_memory(size: Size) -> float:
    """The same and 72 batches, see bench/tree.py."""
    return _rows_memory(size) + 40.0 * size.batch * size.width


_MEMORY: dict[str, Callable[[Size], float]] = {
    "full": lambda size: _rows_memory(size) + min(4.0 * size.batch * size.classes, 2.0**29),
    "torch full": _torch_memory,
    "torch chunked": _chunked_memory,
    "torch adaptive": lambda size: 8.0 * _adaptive(size)["weights"] + 12.0 * _adaptive(size)["logits"],
    "sampled": _rows_memory,
    "head": _rows_memory,
}
