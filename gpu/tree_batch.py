"""Hierarchical softmax whose nodes learn from a few examples at once: nodes (V - 1, D). See `TreeBatch` in the contract.

Twin of cpu/tree_batch.py, which says how. The longest chain is that of the root's B / together groups; most nodes meet few
examples, and all of them move at the same time.
"""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import DTypeLike

from gpu import device, kernels, sort
from gpu.array import Array
from gpu.rule import scalars, wide

WARPS, CROWD, NARROW = 4, 256, 256  # as in tree_batch.cu


class Plan(NamedTuple):
    """A tree on the device, see cpu/tree.py: leaf_up, rank (V,) and node_up (V - 1,) int32; depth of its longest path."""

    leaf_up: Array
    node_up: Array
    depth: int
    rank: Array


class Work(NamedTuple):
    """Scratch for up to B examples with paths of up to L nodes, see tree_batch.cu; S: `groups` of a level.

    keys     (B,) int32     what examples are sorted by
    place    (B,) int32     where each stands in the sorted order
    entries  (L, B) int32   2 * node + turn from the root on, -1 past a path's end
    seen     (L, B) int32   which row of `found` the example meets; -1: the node's own
    misses   (L, B)         turn - logistic(score), times the example's weight
    found    (L S, D)       rows of crowded nodes as their groups found them
    biases   (L S,)         the same of their biases
    """

    keys: Array
    place: Array
    entries: Array
    seen: Array
    misses: Array
    found: Array
    biases: Array


def plan(tree: Any) -> Plan:
    """The tree as the other functions take it: on the current queue's device."""
    put = device.current().device.from_host
    return Plan(put(tree.leaf_up), put(tree.node_up), tree.depth, put(tree.ranks()))


def workspace(batch: int, width: int, depth: int, together: int, dtype: DTypeLike) -> Work:
    """Scratch for calls of `step` with up to `batch` rows and paths of up to `depth` nodes.

    It takes 4 batch (3 depth + 2) bytes, and where together < batch 8 batch depth (width + 1) / together more: 0.9 MB for 1024
    rows of 128 numbers, paths of 30 nodes and groups of 64.
    """
    empty, slots = device.current().device.empty, depth * groups(batch, together)
    return Work(
        empty(batch, np.int32),
        empty(batch, np.int32),
        empty((depth, batch), np.int32),
        empty((depth, batch), np.int32),
        empty((depth, batch), dtype),
        empty((slots, width), dtype),
        empty(slots, dtype),
    )


def groups(batch: int, together: int) -> int:
    """The most groups of crowded nodes that a level has room for; cpu/tree_batch.py says why."""
    return 2 * -(-batch // together) if batch > together else 0


def step(
    grad: Array, loss: Array, learned: Any, work: Work, tree: Plan, hidden: Array, target: Array,
    weight: Array | None, rule: Any, together: int,
) -> None:  # fmt: skip
    """Learn from a batch: write grad (B, D) = d loss / d hidden and loss (B,) in nats, move the nodes.

    nodes (V - 1, D) and hidden (B, D) float32, target (B,) int32 classes; tree: a `Plan`. grad is summed over the path, not
    averaged over B. weight (B,): multiplies an example's loss and gradients; None: all 1. At each node the examples that pass
    it learn in their order, up to `together` at a time, from the node before any of them moves it, and it moves against the
    sum of their gradients. The same bits in every run.
    """
    B, D = hidden.shape
    nodes = learned.rows, learned.biases, learned.squares, learned.bias_squares, wide(learned)
    move = *scalars(rule), B, D
    order = _climb(work, tree, target)
    if B > together:
        sizes = len(work.found) // tree.depth, together
        _meet(nodes, work, tree, hidden, weight, *move, *sizes)
    given = work.entries, work.seen, order, hidden
    found = learned.rows, learned.biases, work.found, work.biases
    values = grad, loss, work.misses, *found, *given, weight, tree.depth, B, D
    row = _beyond(D, 4 * D)  # of each warp
    kernels.launch(__file__, "judge", "P" * 12 + "iii", -(-B // WARPS), 32 * WARPS, *values, shared=WARPS * row)
    grid, changes = (-(-B // WARPS), tree.depth), (*nodes, work.misses, *given, *move)
    kernels.launch(__file__, "move", "PPPPiPPPPPfffii", grid, 32 * WARPS, *changes, shared=WARPS * row)


def _climb(work: Work, tree: Plan, target: Array) -> Array:
    """Sort the examples, write their paths; returns which example is at each place."""
    B = len(target)
    kernels.launch(__file__, "label", "PPPi", -(-B // 256), 256, work.keys, tree.rank, target, B)
    order = sort.by_id(work.keys[:B], len(tree.rank))[1]
    paths = work.place, work.entries, work.seen, tree.leaf_up, tree.node_up, order, target
    kernels.launch(__file__, "climb", "PPPPPPPii", -(-B // 64), 64, *paths, tree.depth, B)
    return order


def _meet(nodes: Any, work: Work, tree: Plan, hidden: Array, weight: Array | None, *numbers: Any) -> None:
    """Crowded nodes meet their examples."""
    B, D, _, together = numbers[-4:]
    scratch = work.seen, work.found, work.biases, work.place, work.entries
    grid = -(-B // together), tree.depth
    values = *nodes, *scratch, hidden, weight, *numbers
    kernels.launch(__file__, "meet", "PPPPiPPPPPPPfffiiii", grid, CROWD, *values, shared=_beyond(D, 8 * D))


def _beyond(width: int, size: int) -> int:
    """Bytes of dynamic shared memory: none where rows fit what the kernels have without asking."""
    return size if width > NARROW else 0
