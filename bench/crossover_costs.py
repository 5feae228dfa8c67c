"""What one step of each contender of `bench crossover` takes, in things that a cost model knows the seconds of, and in memory.

Dense products take operations, logits and weights; what follows a path takes nodes.
All are expected amounts under Zipf's law, and depend on nothing but sizes.
"""

import math
from collections.abc import Callable
from typing import NamedTuple

from bench import zipf
from bench.cost_model import Amounts

CACHE = 1 << 23  # bytes of nodes that are taken to stay in a core's cache from batch to batch; bench/NOTES.md
NEGATIVES = 1024  # of the sampled softmax
SHARE = 0.1  # of a full softmax's time, by which the head's sizes are chosen: the default of HeadReadout
CHUNK, MOST_CHUNK = 64, 512  # examples whose logits PyTorch has at once, see bench/softmax_torch.py
LOGITS = 1.5e8  # at most of such a chunk, and twice: with their gradients
CUTOFFS = (2_000, 20_000, 200_000)  # of the adaptive softmax
NARROWER = 4  # its div_value
TOGETHER = 64  # examples that learn at once at a node, in the mode "batch"
CONTEXT, EMBEDDED, HIDDEN = 4, 64, 256  # the trunk of a whole step: words, their width, the hidden layer


class Size(NamedTuple):
    """Classes V, width d of a hidden vector, examples B of a batch."""

    classes: int
    width: int
    batch: int


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
        narrow, met = max(d // NARROWER**number, 1), B * zipf.share(first, last, V)
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
    rows = max(SHARE * V, 2 * math.sqrt(V))
    return {"operations": 6.0 * B * rows * d, "logits": B * rows, "examples": float(B), "batches": 1.0}


def _tree(size: Size) -> Amounts:
    """Nodes of a path, their numbers, and the numbers that come from behind the cache."""
    V, d, B = size
    missed = zipf.beyond(V, CACHE / (4 * d))
    return {
        "nodes": B * zipf.path(V),
        "numbers": B * zipf.path(V) * d,
        "missed numbers": B * missed * d,
        "batches": 1.0,
    }


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
