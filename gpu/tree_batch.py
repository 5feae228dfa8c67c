"""Hierarchical softmax with mini-batches per node: nodes (V - 1, D). See `TreeBatch` in the contract.

The longest serial chain is the root's B / together groups. Most nodes have few examples, and all of them are updated in
parallel.
"""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import DTypeLike

from gpu import device, rows, sort
from gpu.rule import wide
from gpu.runtime import kernels
from gpu.runtime.array import Array

WARPS, MOVERS, SPAN = 4, 8, 32  # as in tree_batch.cu
CROWD, NARROW = 256, 256  # as in tree_groups.cuh
HOPS, LINED, FEW = 8, 8, 2048  # as in tree_paths.cuh


class Plan(NamedTuple):
    """A tree on the device, see cpu/tree/tree.py: leaf_up, rank (V,) and node_up (V - 1,) int32; depth of its longest path.

    hops (V, HOPS) int32: the pointers to parents at every `stretch` steps up from each leaf, -1 past the root
    """

    leaf_up: Array
    node_up: Array
    depth: int
    rank: Array
    hops: Array
    stretch: int


class Work(NamedTuple):
    """Scratch for up to B examples with paths of up to L nodes, see tree_batch.cu; S: `groups`, P: `spans` of a level.

    keys     (B,) int32     the examples' sort keys
    order    (B,) int32     the example at each place of the sorted order
    place    (B,) int32     the place of each example in the sorted order
    entries  (L, B) int32   2 * node + turn from the root on, -1 past a path's end
    seen     (L, B) int32   the row of `found` that the example reads; -1: the node's own
    misses   (L, B)         turn - logistic(score), times the example's weight
    found    (L S, D)       rows of crowded nodes as their groups read them
    biases   (L S,)         the same for their biases
    parts    (2 L P, D)     partial gradients per span of nodes whose examples are in several spans
    pushes   (2 L P,)       the same for their biases
    """

    keys: Array
    order: Array
    place: Array
    entries: Array
    seen: Array
    misses: Array
    found: Array
    biases: Array
    parts: Array
    pushes: Array


def plan(tree: Any) -> Plan:
    """Copies the tree to the current queue's device, in 44 bytes per class."""
    here = device.current().device
    leaf_up, node_up, classes = here.from_host(tree.leaf_up), here.from_host(tree.node_up), len(tree.leaf_up)
    hops, stretch = here.empty((classes, HOPS), np.int32), max(-(-tree.depth // HOPS), 1)
    kernels.launch(__file__, "hop", "PPPii", -(-classes // 256), 256, hops, leaf_up, node_up, stretch, classes)
    return Plan(leaf_up, node_up, tree.depth, here.from_host(tree.ranks()), hops, stretch)


def workspace(batch: int, width: int, depth: int, together: int, dtype: DTypeLike) -> Work:
    """Allocates scratch for calls of `step` with up to `batch` rows and paths of up to `depth` nodes.

    It takes 4 batch (3 depth + 3) + depth batch (width + 1) / 4 bytes, plus 8 batch depth (width + 1) / together if together <
    batch: 2 MB for 1024 rows of 128 numbers, paths of 30 nodes and groups of 64.
    """
    empty, slots, parts = device.current().device.empty, depth * groups(batch, together), 2 * depth * spans(batch)
    places = (empty(shape, np.int32) for shape in (batch, batch, batch, (depth, batch), (depth, batch)))
    numbers = (empty(shape, dtype) for shape in ((depth, batch), (slots, width), slots, (parts, width), parts))
    return Work(*places, *numbers)


def spans(batch: int) -> int:
    """Returns the number of spans of places into which `move` partitions a level."""
    return -(-batch // SPAN)


def groups(batch: int, together: int) -> int:
    """Returns the maximum number of groups of crowded nodes per level.

    A node that begins at place p uses the slots from 2 (p // together) on. It has more than `together` examples, so the next
    node begins late enough for its groups to follow.
    """
    return 2 * -(-batch // together) if batch > together else 0


def step(
    grad: Array, loss: Array, learned: Any, work: Work, tree: Plan, hidden: Array, target: Array,
    weight: Array | None, rate: float, together: int,
) -> None:  # fmt: skip
    """See the contract."""
    B, D = hidden.shape
    crowded = B > together
    nodes = learned.rows, learned.biases, learned.squares, learned.bias_squares, wide(learned)
    changes = rate, B, D
    seen = work.seen if crowded else None
    order = _line_up(work, seen, tree, target)
    if crowded:
        sizes = len(work.found) // tree.depth, together
        _meet(nodes, work, tree, hidden, weight, *changes, *sizes)
    given = work.entries, seen, order, hidden
    found = learned.rows, learned.biases, work.found, work.biases
    values = grad, loss, work.misses, *found, *given, weight, tree.depth, B, D
    kernels.launch(__file__, "judge", "P" * 12 + "iii", B, 32 * WARPS, *values, shared=_beyond(D, 4 * WARPS * D))
    _move(nodes, work, tree.depth, given, changes)


def _line_up(work: Work, seen: Array | None, tree: Plan, target: Array) -> Array:
    """Sorts the examples, writes their paths; returns the example at each place. A few examples take one launch."""
    B = len(target)
    paths, walk = (work.entries, seen, tree.hops, tree.node_up), (tree.stretch, tree.depth, B)
    if B <= FEW:
        block, given = LINED * (HOPS + 32), (work.place, work.order, *paths, tree.rank, target, *walk)
        kernels.launch(__file__, "line_up", "PPPPPPPPiii", -(-B // LINED), block, *given)
        return work.order
    rows.gather(work.keys[:B].reshape(B, 1), tree.rank.reshape(-1, 1), target)
    order = sort.by_id(work.keys[:B], len(tree.rank))[1]
    values = work.place, *paths, order, target, *walk
    kernels.launch(__file__, "climb", "PPPPPPPiii", -(-HOPS * B // 256), 256, *values)
    return order


def _meet(nodes: Any, work: Work, tree: Plan, hidden: Array, weight: Array | None, *numbers: Any) -> None:
    """Lets crowded nodes learn from their examples."""
    B, D, _, together = numbers[-4:]
    scratch = work.seen, work.found, work.biases, work.place, work.entries
    grid = -(-B // together), tree.depth
    values = *nodes, *scratch, hidden, weight, *numbers
    kernels.launch(__file__, "meet", "PPPPiPPPPPPPfiiii", grid, CROWD, *values, shared=_beyond(D, 8 * D))


def _move(nodes: Any, work: Work, depth: int, given: Any, changes: Any) -> None:
    """Updates the other nodes: those with all examples in one span, then those with parts of several."""
    B, D = changes[-2:]
    many, parts, warps = spans(B), (work.parts, work.pushes), MOVERS if D <= NARROW else WARPS
    values, room = (*nodes, *parts, work.misses, *given, *changes), _beyond(D, 4 * warps * D)
    kernels.launch(__file__, "move", "PPPPiPPPPPPPfii", (many, depth), 32 * warps, *values, shared=room)
    values = *nodes, *parts, *given[:2], *changes, many
    kernels.launch(__file__, "finish", "PPPPiPPPPfiii", (many - 1, depth), 128, *values, shared=_beyond(D, 4 * D))


def _beyond(width: int, size: int) -> int:
    """Returns bytes of dynamic shared memory: none if rows fit the kernels' static memory."""
    return size if width > NARROW else 0
