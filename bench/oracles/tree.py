"""The task of `tree.step`: Zipf-distributed classes, their Huffman tree and its nodes, batches, and the expected first step.

It uses only NumPy: on a GPU neither the task nor its checks need Numba. bench/step/tree.py has the same for the host's cores.
"""

import itertools
from collections.abc import Callable
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from hybrid.contract import Learned

# The Huffman tree of cpu/tree/tree.py in NumPy alone, for a machine where Numba may be missing or slow to start.
#
# It has the parts that GPU kernels read: pointers to parents, the depth of the longest path, and ranks. The numbering is
# exactly that of `cpu.tree.tree.huffman`.


class Shape(NamedTuple):
    """The arrays leaf_up (V,) and node_up (V - 1,) int32, and depth, of `cpu.tree.tree.Tree`."""

    leaf_up: np.ndarray
    node_up: np.ndarray
    depth: int

    def ranks(self) -> np.ndarray:
        """Returns the number of leaves to the left of each, (V,) int32."""
        under = levels(self.node_up)
        leaves, left = np.zeros((2, self.node_up.size), np.int64)  # leaves below each node, and below its left child
        _count(leaves, left, self.leaf_up, np.ones(self.leaf_up.size, np.int64))
        for level in under[:0:-1]:
            _count(leaves, left, self.node_up[level], leaves[level])
        first = np.zeros(self.node_up.size, np.int64)
        for level in under[1:]:
            first[level] = _place(first, left, self.node_up[level])
        return _place(first, left, self.leaf_up).astype(np.int32)


def huffman(counts: ArrayLike) -> Shape:
    """Builds the tree of least mean path if class v occurs `counts[v]` times; counts (V,) whole numbers >= 0, V >= 2.

    It takes as many rounds as `_merge`, a few dozen if counts fall slowly, as Zipf's do.
    """
    counts = np.asarray(counts)
    order = np.argsort(counts, kind="stable")
    return _numbered(_merge(counts[order].astype(np.float64)), order)


def levels(node_up: np.ndarray) -> list[slice]:
    """Returns the nodes of each level, from the root on."""
    parents, ends = node_up >> 1, [0, 1]
    while ends[-1] < parents.size:
        ends.append(int(np.searchsorted(parents, ends[-1])))
    return [slice(first, last) for first, last in itertools.pairwise(ends)]


def path(tree: Any, leaf: int) -> list[tuple[int, int]]:
    """Returns the (node, turn) pairs from the root to a class, of a `Shape` or a `cpu.tree.tree.Tree`."""
    steps = []
    up = int(tree.leaf_up[leaf])
    while up >= 0:
        steps.append((up // 2, up % 2))
        up = int(tree.node_up[up // 2])
    return steps[::-1]


def _merge(counts: np.ndarray) -> np.ndarray:
    """Merges ascending counts; returns pairs (V - 1, 2), each inner node's children: leaf i as i, inner node i as V + i.

    A new node weighs at least as much as the two lightest items together. So all items up to that weight are paired in one
    round. Of equal weights leaves come first, then inner nodes in order of creation.
    """
    leaves = counts.size
    pairs, weights = np.empty((leaves - 1, 2), np.int32), np.empty(leaves - 1)
    leaf = inner = made = 0  # leaves and inner nodes already paired; inner nodes created
    while made < leaves - 1:
        lightest = np.sort(np.concatenate([counts[leaf : leaf + 2], weights[inner : min(inner + 2, made)]]))
        most = lightest[:2].sum()
        last_leaf = int(np.searchsorted(counts, most, "right"))
        last_inner = inner + int(np.searchsorted(weights[inner:made], most, "right"))
        items = np.concatenate([np.arange(leaf, last_leaf), leaves + np.arange(inner, last_inner)])
        heavy = np.concatenate([counts[leaf:last_leaf], weights[inner:last_inner]])
        order = np.argsort(heavy, kind="stable")[: heavy.size // 2 * 2]
        joined = order.size // 2
        pairs[made : made + joined] = items[order].reshape(-1, 2)
        weights[made : made + joined] = heavy[order].reshape(-1, 2).sum(1)
        taken = int(np.count_nonzero(order < last_leaf - leaf))
        leaf, inner, made = leaf + taken, inner + order.size - taken, made + joined
    return pairs


def _numbered(pairs: np.ndarray, order: np.ndarray) -> Shape:
    """Builds the tree of such pairs, its inner nodes numbered breadth first from the last pair, level by level."""
    leaves = order.size
    leaf_up, node_up = np.empty(leaves, np.int32), np.empty(leaves - 1, np.int32)
    node_up[0], first, depth = -1, 0, 0
    level = np.array([leaves - 2])  # the pair of each node of a level
    while level.size:
        items = pairs[level].ravel()
        ups = np.arange(2 * first, 2 * (first + level.size), dtype=np.int32)
        ends = items < leaves
        leaf_up[order[items[ends]]] = ups[ends]
        first, depth, level = first + level.size, depth + 1, items[~ends] - leaves
        node_up[first : first + level.size] = ups[~ends]
    return Shape(leaf_up, node_up, depth)


def _count(leaves: np.ndarray, left: np.ndarray, ups: np.ndarray, below: np.ndarray) -> None:
    """Adds the counts of some children to their parents."""
    np.add.at(leaves, ups >> 1, below)
    np.add.at(left, ups >> 1, below * (1 - (ups & 1)))


def _place(first: np.ndarray, left: np.ndarray, ups: np.ndarray) -> np.ndarray:
    """Returns the number of leaves to the left of some children, from those of their parents."""
    return first[ups >> 1] + left[ups >> 1] * (ups & 1)


WIDTH, BATCH, RATE = 128, 1024, 0.02
BATCHES = 64  # target batches, more if small, so that a batch's rows have left the cache when it repeats
TRUNKS = 8  # hidden vector batches: in training a trunk has just written them


class Task:
    """Classes, their tree, its nodes, and batches of hidden vectors and targets.

    empty(shape, dtype)  allocates the large arrays
    """

    empty: Callable[..., np.ndarray] = staticmethod(np.empty)

    def __init__(self, classes: int, threads: int, width: int = WIDTH, batch: int = BATCH):
        self.classes, self.threads, self.width, self.batch = classes, threads, width, batch
        self.rng = np.random.default_rng(0)
        share = 1 / np.arange(1, classes + 1)
        self.chance = np.cumsum(share / share.sum())
        self.targets = [self.draw(batch) for _ in range(max(BATCHES, BATCHES * BATCH // batch))]
        self.hidden = self.empty((TRUNKS, batch, width), np.float32)
        self.rng.standard_normal(out=self.hidden, dtype=np.float32)
        self.counts = (1e9 * share).astype(np.int64)
        self.nodes = self.empty((classes - 1, width), np.float32)
        some = self.rng.standard_normal((10_000, width), np.float32) * np.float32(0.05)
        for first in range(0, classes - 1, len(some)):
            self.nodes[first : first + len(some)] = some[: classes - 1 - first]

    @cached_property
    def tree(self) -> Any:
        """The tree in the form that GPU kernels read."""
        return huffman(self.counts)

    def draw(self, count: int) -> np.ndarray:
        """Draws targets by Zipf's law."""
        return np.minimum(np.searchsorted(self.chance, self.rng.random(count)), self.classes - 1).astype(np.int32)

    def length(self) -> float:
        """Returns the mean number of nodes on a path."""
        return float(np.mean([len(path(self.tree, leaf)) for targets in self.targets for leaf in targets]))


def learned(task: Task, together: int, rate: float = RATE):
    """Returns the ids of the first batch's nodes, these nodes before and after the step, the gradients and the losses."""
    lists = [path(task.tree, leaf) for leaf in task.targets[0]]
    met = np.unique([node for steps in lists for node, _ in steps])
    place = {int(node): i for i, node in enumerate(met)}
    first = task.nodes[met].astype(np.float64)
    nodes, hidden = Learned(first.copy()), task.hidden[0].astype(np.float64)
    short = [[(place[node], turn) for node, turn in steps] for steps in lists]
    return met, first, nodes.rows, *learn_together(nodes, hidden, short, np.ones(len(hidden)), rate, together)


# Sparse learning in float64: one visit after another, as in the contract.


def visit(learned, row, g, g_bias, rate):
    """Updates a row, and its bias if present, with its gradient."""
    whole = g if learned.biases is None else np.append(g, g_bias)
    if learned.squares is None:
        move = rate * whole
    elif learned.squares.ndim == 1:
        learned.squares[row] += (whole**2).mean()
        move = rate * whole / (np.sqrt(learned.squares[row]) + 1e-10)
    else:
        learned.squares[row] += whole[: len(g)] ** 2
        squares = learned.squares[row]
        if learned.biases is not None:
            learned.bias_squares[row] += whole[-1] ** 2
            squares = np.append(squares, learned.bias_squares[row])
        move = rate * whole / (np.sqrt(squares) + 1e-10)
    learned.rows[row] -= move[: len(g)]
    if learned.biases is not None:
        learned.biases[row] -= move[-1]


def learn_together(learned, hidden, lists, weight, rate, together):
    """Takes TreeBatch.step: each node's examples learn in order, `together` at a time; returns grad and loss."""
    grad, loss = np.zeros(hidden.shape), np.zeros(len(hidden))
    visitors: dict = {}
    for b, steps in enumerate(lists):
        for node, turn in steps:
            visitors.setdefault(node, []).append((b, turn))
    for node, met in visitors.items():
        for first in range(0, len(met), together):
            g, g_bias = np.zeros(hidden.shape[1]), 0.0
            for b, turn in met[first : first + together]:
                miss, cost = missed(learned, node, turn, hidden[b])
                loss[b] += weight[b] * cost
                grad[b] -= weight[b] * miss * learned.rows[node]
                g -= weight[b] * miss * hidden[b]
                g_bias -= weight[b] * miss
            visit(learned, node, g, g_bias, rate)
    return grad, loss


def missed(learned, node, turn, h):
    """Returns turn - logistic(score), and -log p(turn)."""
    score = learned.rows[node] @ h + (0 if learned.biases is None else learned.biases[node])
    return turn - 1 / (1 + np.exp(-score)), np.logaddexp(0, -score if turn else score)
