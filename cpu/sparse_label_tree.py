"""Probabilistic label trees over sparse features, where every node is a regularised logistic regression.

A node learns from the examples that have a label below its parent; the root learns from all. y = 1 if the example has a label
below the node. Nodes are independent, so each is trained to its optimum, and a weight exists only for features of the node's
examples. Siblings share their examples. They are trained and stored in chunks of up to CHUNK, whose weights are grouped by
feature. So a search reads one run of weights per feature that an example and the chunk share.

Training time is proportional to the sum, over nodes, of the features of the node's examples, times passes. For arity a and V
labels that is at most a log V times the features of all examples, times the labels of each. Scratch per thread is CHUNK times
the features of a chunk's examples, plus GROUP weights in all.

A node is trained by coordinate descent in the dual. It minimises |w|^2 / 2 + sum of c_i log(1 + e^-(y_i w . x_i)) with y_i = 1
or -1. The last number of w is the bias, as the weight of a constant feature 1. The dual has one variable 0 < a_i < c_i per
example, and w = sum of a_i y_i x_i. Each step minimises the dual along one coordinate. With u = log(a / (c - a)) the minimum is
at

    slope(u) = |x_i|^2 (a(u) - a_i) + y_i w . x_i + u = 0,    a(u) = c_i logistic(u)

Its derivative is at least 1, so Newton's method within a bracket converges, mostly in one step. Each pass visits the examples
in a new random order. At the solution u_i = -y_i w . x_i, so the largest |slope| of a pass measures convergence.

Prabhu et al. 2018, "Parabel"; Jasinska-Kobus et al. 2020, "Probabilistic label trees for extreme multi-label classification",
arXiv:2009.11218; Yu, Huang and Lin 2011, "Dual coordinate descent methods for logistic regression and maximum entropy models";
Hsieh et al. 2008, "A dual coordinate descent method for large-scale linear SVM".
"""

from typing import TYPE_CHECKING, Any, NamedTuple

import numba
import numpy as np
from numpy.typing import ArrayLike

from cpu.output import topk
from cpu.output.topk import drop, heap_push, seek
from cpu.runtime.compiled import Array, called, launched
from cpu.vectors.activation import logistic, softplus
from cpu.vectors.splitmix import GOLDEN, mix

if TYPE_CHECKING:
    from scipy.sparse import csc_array, csr_array

CHUNK = 32  # siblings whose weights are stored together
GROUP = 2**25  # weights allocated at a time
STEPS = 30  # maximum number of Newton or bisection steps: float32 resolves no more
SAVED = {  # arrays of Weights that do not follow from the tree alone
    "biases": np.float32,
    "feature_at": np.int64,
    "feature": np.int32,
    "weight_at": np.int64,
    "node": np.int8,
    "weight": np.float32,
}


class LabelTree(NamedTuple):
    """A label tree of N nodes, numbered breadth first from the root, 0. V of them are leaves, one per label.

    up        (N,) int32      parent of each node; -1 at the root
    child_at  (N + 1,) int32  node n has the children child_at[n] to child_at[n + 1]; a leaf has none
    leaf      (V,) int32      the node of each label
    label     (N,) int32      the label of each leaf; -1 at an inner node
    """

    up: np.ndarray
    child_at: np.ndarray
    leaf: np.ndarray
    label: np.ndarray


class Weights(NamedTuple):
    """Weights in M chunks of nodes, with E features and W weights in all; chunk m has nodes node_at[m] to node_at[m + 1].

    node_at     (M + 1,) int32     the root is a chunk of its own
    first       (N + 1,) int32     chunks of node n's children: first[n] to first[n + 1]
    biases      (N,) float32
    feature_at  (M + 1,) int64     the features of chunk m, ascending: feature[feature_at[m] : feature_at[m + 1]]
    feature     (E,) int32
    weight_at   (E + 1,) int64     the weights of a chunk's feature: weight[weight_at[e] : weight_at[e + 1]]
    node        (W,) int8          their nodes, counted from the chunk's first, ascending
    weight      (W,) float32
    """

    node_at: np.ndarray
    first: np.ndarray
    biases: np.ndarray
    feature_at: np.ndarray
    feature: np.ndarray
    weight_at: np.ndarray
    node: np.ndarray
    weight: np.ndarray


class Penalty(NamedTuple):
    """The training options of a node.

    bound      (B,) float32: the factor of each example's loss, against |w|^2 / 2
    tolerance  see `solve`
    passes     maximum
    least      smaller weights are dropped
    seed       of the order of examples
    """

    bound: np.ndarray
    tolerance: float
    passes: int
    least: float
    seed: int


def from_parents(parents: ArrayLike, leaf: ArrayLike) -> LabelTree:
    """Builds the tree of N nodes of any numbering and arity.

    parents  (N,) parent of each node; -1 at the root, which is unique
    leaf     (V,) the node of each label; exactly these nodes have no children

    Raises ValueError unless the arguments form a tree whose leaves are the labels.
    """
    parents, leaf = np.asarray(parents, np.int32), np.asarray(leaf, np.int32)
    nodes, childless = parents.size, np.setdiff1d(np.arange(parents.size), parents)
    if parents.ndim != 1 or nodes < 2 or parents.max() >= nodes or parents.min() < -1 or (parents < 0).sum() != 1:
        raise ValueError("parents: expected each node's parent, and -1 at one root")
    if leaf.ndim != 1 or not np.array_equal(np.sort(leaf), childless):
        raise ValueError(f"leaf: expected one label at each of the {childless.size} nodes without children")
    order = _breadth_first(parents)
    place = np.empty(parents.size, np.int32)  # old node number -> new node number
    place[order] = np.arange(parents.size)
    up = np.where(parents[order] < 0, -1, place[parents[order]]).astype(np.int32)
    label = np.full(parents.size, -1, np.int32)
    label[place[leaf]] = np.arange(leaf.size)
    # Children are in the order of their parents: those of node n precede those of n + 1 and follow the root.
    child_at = 1 + np.concatenate([[0], np.cumsum(np.bincount(up[1:], minlength=up.size))]).astype(np.int32)
    return LabelTree(up, child_at, place[leaf], label)


def fit(tree: LabelTree, features: "csr_array", labels: "csr_array", penalty: Penalty) -> Weights:
    """Trains every node of a tree over V labels.

    features  (B, F) CSR of float32, ids int32, distinct within a row
    labels    (B, V) CSR: an entry for each label of an example; an example may have none

    A node whose examples all agree has no weights; its odds are those with half an example on each side added. Results are
    byte-identical at any number of threads.
    """
    reach = _reached(tree, labels)
    node_at, first = _chunks(tree)
    biases = np.empty(tree.up.size, np.float32)
    plan = _plan(tree, node_at, reach, features)
    row_at, squares = features.indptr.astype(np.int64), 1 + features.multiply(features).sum(axis=1)
    examples = row_at, features.indices, features.data, features.shape[1], np.asarray(squares, np.float32).ravel()
    rule = penalty.bound, float(penalty.tolerance), penalty.passes, float(penalty.least), np.uint64(penalty.seed)
    nodes = biases, node_at, plan.parent, reach.indptr.astype(np.int64), reach.indices.astype(np.int32)
    parts = [_fit_group(plan, begin, end, nodes + examples + rule) for begin, end in _groups(plan.weights)]
    used, feature, counts, node, weight = (np.concatenate(part) for part in zip(*parts, strict=True))
    return Weights(node_at, first, biases, _ends(used[:, 0]), feature, _ends(counts), node, weight)


def restored(tree: LabelTree, features: int, **arrays: np.ndarray) -> Weights:
    """Rebuilds the weights of a tree over so many features from those arrays of Weights that the tree does not determine.

    Raises ValueError for arrays of another tree, or arrays that would let a search read out of bounds.
    """
    node_at, first = _chunks(tree)
    weights = Weights(node_at, first, *(arrays[name] for name in SAVED))
    sizes = tree.up.size, node_at.size, weights.feature.size + 1
    for name, size in zip(("biases", "feature_at", "weight_at"), sizes, strict=True):
        if arrays[name].size != size:
            raise ValueError(f"{name}: found {arrays[name].size} numbers, expected {size}")
    for name, of in (("feature_at", weights.feature), ("weight_at", weights.weight)):
        ends = arrays[name]
        if ends[0] != 0 or ends[-1] != of.size or (np.diff(ends) < 0).any():
            raise ValueError(f"{name}: found no numbers that rise from 0 to {of.size}")
    chunk = np.repeat(np.arange(node_at.size - 1), np.diff(weights.feature_at))
    if weights.feature.size and (weights.feature.min() < 0 or weights.feature.max() >= features):
        raise ValueError(f"feature: found ids outside 0 to {features - 1}")
    if ((np.diff(weights.feature) <= 0) & (np.diff(chunk) == 0)).any():
        raise ValueError("feature: found ids that do not rise within their nodes")
    most = np.repeat(np.diff(node_at)[chunk], np.diff(weights.weight_at))
    if weights.node.size != weights.weight.size or ((weights.node < 0) | (weights.node >= most)).any():
        raise ValueError("node: found other nodes than those of the weights' place in the tree")
    return weights


def best(
    ids: Array, log_probs: Array, tree: LabelTree, weights: Weights, row_at: Array, feature: Array, value: Array
) -> None:
    """Writes the k most likely labels of each example, most likely first: ids (B, k) int32, log_probs (B, k) float32.

    A node is at least as likely as its descendants, so best-first search yields the labels in falling order of probability.
    Ties go to the higher node number, the deeper node.

    row_at (B + 1,), feature int32, value float32: the examples, CSR rows with ascending ids; k <= V.
    """
    _best(ids, log_probs, tree.label, *weights, row_at, feature, value, numba.get_num_threads())


def given(
    log_probs: Array, tree: LabelTree, weights: Weights, labels: Array, row_at: Array, feature: Array, value: Array
) -> None:
    """log_probs[b, j] = log p(example b has label labels[b, j]); labels (B, k), -inf for a label -1."""
    chunk_of = np.repeat(np.arange(weights.node_at.size - 1), np.diff(weights.node_at))
    inner = tree.up, tree.leaf, chunk_of
    _given(log_probs, *inner, *weights, labels, row_at, feature, value, numba.get_num_threads())


@launched(error_model="numpy")
def solve(w, row_at, ids, values, squares, positive, bound, tolerance, passes, seed):
    """Writes w (F + 1,) float64 for n examples; returns the number of passes.

    row_at    (n + 1,), ids, values  the examples' features, CSR; ids below F
    squares   (n,) float32 |x_i|^2, with the bias's 1
    positive  (n,) bool: y_i = 1
    bound     (n,) float32 c_i; an example with 0 is left out
    tolerance stops after a pass without a larger |slope|, or after `passes`; at least 1e-4: odds are float32
    seed      uint64: of the order
    """
    n = squares.size
    w[:] = 0
    alpha, odds = np.zeros(n), np.full(n, np.float32(-5))
    order = np.arange(n)
    close = np.float32(tolerance / 10)  # tolerance of the slope along a coordinate
    for turn in range(passes):
        _shuffle(order, seed + np.uint64(turn) * np.uint64(n))
        far = 0.0
        for i in order:
            if bound[i] <= 0:
                continue
            score = w[w.size - 1]
            for j in range(row_at[i], row_at[i + 1]):
                score += w[ids[j]] * values[j]
            margin = np.float32(score if positive[i] else -score)
            slope = margin + odds[i] if turn else np.float32(np.inf)
            far = max(far, abs(slope))
            if abs(slope) <= tolerance:
                continue
            odds[i], now = _least(odds[i], np.float32(alpha[i]), margin, squares[i], bound[i], close)
            change = now - alpha[i] if positive[i] else alpha[i] - now
            alpha[i] = now
            w[w.size - 1] += change
            for j in range(row_at[i], row_at[i + 1]):
                w[ids[j]] += change * values[j]
        if far <= tolerance:
            return turn + 1
    return passes


@called(error_model="numpy")
def _least(odds, alpha, margin, square, bound, close):
    """Returns the u that minimises the dual along a coordinate, and a(u)."""
    low, high = square * (alpha - bound) - margin, square * alpha - margin
    odds = min(max(odds, low), high)
    for _ in range(STEPS):
        share = logistic(odds)
        slope = square * (bound * share - alpha) + margin + odds
        if abs(slope) <= close:
            break
        if slope > 0:
            high = odds
        else:
            low = odds
        odds -= slope / (1 + square * bound * share * (1 - share))
        if not low < odds < high:
            odds = (low + high) / 2
    return odds, bound * logistic(odds)


@called()
def _shuffle(order, seed):
    """Shuffles `order` by a seed (Fisher and Yates)."""
    for i in range(order.size - 1, 0, -1):
        j = np.int64(mix(seed + np.uint64(i) * GOLDEN) % np.uint64(i + 1))
        order[i], order[j] = order[j], order[i]


def _breadth_first(parents: Array) -> Array:
    """Returns the nodes level by level; within a level by the position of the parent, then by number."""
    by_parent = np.argsort(parents, kind="stable")
    begin = np.searchsorted(parents[by_parent], np.arange(parents.size + 1))
    levels = [by_parent[:1]]
    while len(levels[-1]):
        counts = begin[levels[-1] + 1] - begin[levels[-1]]
        first = np.repeat(begin[levels[-1]] - np.cumsum(counts) + counts, counts)
        levels.append(by_parent[first + np.arange(counts.sum())])
    order = np.concatenate(levels)
    if order.size != parents.size:
        raise ValueError(f"parents: found {parents.size - order.size} nodes that hang from no root: a circle")
    return order


class _Plan(NamedTuple):
    """For each chunk, (M,) each: its nodes' parent, its maximum numbers of features and weights, and its training cost."""

    parent: np.ndarray
    features: np.ndarray
    weights: np.ndarray
    cost: np.ndarray


def _plan(tree: LabelTree, node_at: Array, reach: "csc_array", features: "csr_array") -> _Plan:
    parent, nodes, lengths = tree.up[node_at[:-1]], np.diff(node_at), np.diff(features.indptr)
    mass = np.append(reach.T @ lengths.astype(np.float64), lengths.sum())[parent].astype(np.int64)  # -1: all examples
    most = np.minimum(mass, features.shape[1])
    return _Plan(parent, most, nodes * most, nodes * mass)


def _fit_group(plan: _Plan, begin: int, end: int, given: tuple[Any, ...]) -> tuple[Array, ...]:
    """Trains the chunks begin:end; returns their numbers of features and weights, (chunks, 2), and the arrays of both."""
    feature_room, weight_room = _ends(plan.features[begin:end]), _ends(plan.weights[begin:end])
    used, dear = np.zeros((end - begin, 2), np.int64), np.argsort(-plan.cost[begin:end], kind="stable")
    by_feature = [np.empty(feature_room[-1], np.int32), np.empty(feature_room[-1], np.int32)]
    by_weight = [np.empty(weight_room[-1], np.int8), np.empty(weight_room[-1], np.float32)]
    _fit(used, *by_feature, *by_weight, feature_room, weight_room, begin, dear, *given, numba.get_num_threads())
    parts = [_packed(part, feature_room, used[:, 0]) for part in by_feature]
    return used, *parts, *(_packed(part, weight_room, used[:, 1]) for part in by_weight)


def _packed(part: Array, room: Array, used: Array) -> Array:
    """Returns the used parts of the chunks of a group, concatenated."""
    return np.concatenate([part[at : at + count] for at, count in zip(room[:-1], used, strict=True)])


def _reached(tree: LabelTree, labels: "csr_array") -> "csc_array":
    """Returns a (B, N) CSC matrix with an entry if an example has a label below a node; a node's examples ascend."""
    from scipy import sparse

    rows, nodes = [], []
    label, node = np.arange(tree.leaf.size), tree.leaf
    while node.size:
        rows.append(label)
        nodes.append(node)
        label, node = label[tree.up[node] >= 0], tree.up[node][tree.up[node] >= 0]
    ways = np.concatenate(rows), np.concatenate(nodes)
    above = sparse.csr_array((np.ones(ways[0].size, np.int32), ways), (tree.leaf.size, tree.up.size))
    have = sparse.csr_array((np.ones(labels.indices.size, np.int32), labels.indices, labels.indptr), labels.shape)
    reach = sparse.csc_array(have @ above)
    reach.sort_indices()
    return reach


def _chunks(tree: LabelTree) -> tuple[Array, Array]:
    """Returns node_at and first of Weights."""
    children = np.diff(tree.child_at)
    parts = -(-children // CHUNK)
    first = (1 + np.concatenate([[0], np.cumsum(parts)])).astype(np.int32)
    parent = np.repeat(np.arange(children.size), parts)
    place = np.arange(parent.size) + 1 - first[parent]
    begin = tree.child_at[parent] + place * children[parent] // parts[parent]
    return np.concatenate([[0], begin, [tree.up.size]]).astype(np.int32), first


def _groups(sizes: Array) -> list[tuple[int, int]]:
    """Returns runs of chunks with at most GROUP weights, or of one larger chunk."""
    cuts = [0]
    total = 0
    for place, size in enumerate(sizes.tolist()):
        if total and total + size > GROUP:
            cuts.append(place)
            total = 0
        total += size
    return list(zip(cuts, [*cuts[1:], sizes.size], strict=True))


def _ends(counts: Array) -> Array:
    return np.concatenate([[0], np.cumsum(counts, dtype=np.int64)])


@launched(parallel=True)
def _fit(
    used, feature, counts, node, weight, feature_room, weight_room, begin, dear, biases, node_at, parent, reach_at, reach,
    row_at, ids, values, features, squares, bound, tolerance, passes, least, seed, threads,
):  # fmt: skip
    """Trains the chunks from `begin` on, the most expensive first, dealt to the threads in turn."""
    every = np.arange(row_at.size - 1).astype(np.int32)
    for thread in numba.prange(threads):
        place = np.full(features, -1, np.int32)
        for turn in range(thread, dear.size, threads):
            k = dear[turn]
            m = begin + k
            up = parent[m]
            members = every if up < 0 else reach[reach_at[up] : reach_at[up + 1]]
            own = _own(place, members, row_at, ids, values, squares, bound)
            table = np.zeros((node_at[m + 1] - node_at[m], own[0].size + 1))
            for child in range(table.shape[0]):
                n = node_at[m] + child
                has = _positive(members, reach[reach_at[n] : reach_at[n + 1]])
                if not _one_sided(table[child], has, own[5]):
                    order = seed + (np.uint64(n) << np.uint64(32))
                    solve(table[child], own[1], own[2], own[3], own[4], has, own[5], tolerance, passes, order)
                biases[n] = table[child, -1]
            at, to = feature_room[k], weight_room[k]
            _keep(used[k], feature[at:], counts[at:], node[to:], weight[to:], own[0], table, least)


@called()
def _own(place, members, row_at, ids, values, squares, bound):
    """Returns the ascending features of some examples, and these examples as CSR with renumbered features."""
    at = np.zeros(members.size + 1, np.int64)
    for i, b in enumerate(members):
        at[i + 1] = at[i] + row_at[b + 1] - row_at[b]
    local, copied = np.empty(at[-1], np.int32), np.empty(at[-1], np.float32)
    met = np.empty(min(at[-1], place.size), np.int32)
    size = 0
    for b in members:
        for j in range(row_at[b], row_at[b + 1]):
            if place[ids[j]] < 0:
                place[ids[j]] = 0
                met[size] = ids[j]
                size += 1
    met = np.sort(met[:size])
    for f in range(size):
        place[met[f]] = f
    for i, b in enumerate(members):
        for j in range(row_at[b], row_at[b + 1]):
            local[at[i] + j - row_at[b]] = place[ids[j]]
            copied[at[i] + j - row_at[b]] = values[j]
    for f in range(size):
        place[met[f]] = -1
    return met, at, local, copied, squares[members], bound[members]


@called()
def _positive(members, own):
    """Returns a mask of the members that are in `own`; both ascend."""
    has = np.zeros(members.size, np.bool_)
    i = 0
    for b in own:
        while members[i] < b:
            i += 1
        has[i] = True
    return has


@called()
def _one_sided(w, has, bound):
    """True if all examples with a positive bound agree or there is none; writes the bias."""
    yes, no = 0, 0
    for i in range(has.size):
        if bound[i] > 0:
            yes += has[i]
            no += not has[i]
    w[-1] = np.log((yes + 0.5) / (no + 0.5))
    return yes == 0 or no == 0


@called()
def _keep(used, feature, counts, node, weight, met, table, least):
    """Writes the weights above `least` in absolute value, feature by feature, and the numbers of features and weights."""
    features, weights = 0, 0
    for f in range(met.size):
        before = weights
        for child in range(table.shape[0]):
            if abs(table[child, f]) > least:
                node[weights], weight[weights] = child, table[child, f]
                weights += 1
        if weights > before:
            feature[features], counts[features] = met[f], weights - before
            features += 1
    used[0], used[1] = features, weights


@launched(parallel=True)
def _best(
    out, log_probs, label, node_at, first, biases, feature_at, features, weight_at, node, weight, row_at, ids, values,
    threads,
):  # fmt: skip
    for thread in numba.prange(threads):
        keys, items, scores = np.empty(1024), np.empty(1024, np.int32), np.empty(CHUNK)
        for b in range(thread, row_at.size - 1, threads):
            topk.clear(out[b], log_probs[b])
            own, worth = ids[row_at[b] : row_at[b + 1]], values[row_at[b] : row_at[b + 1]]
            size, keys, items = heap_push(keys, items, 0, 0.0, -1)
            count = 0
            while count < out.shape[1] and size:
                key, at = keys[0], items[0]
                size = drop(keys, items, size)
                if at >= 0 and label[at] >= 0:
                    out[b, count], log_probs[b, count] = label[at], key
                    count += 1
                    continue
                begin, end = (first[at], first[at + 1]) if at >= 0 else (0, 1)
                for m in range(begin, end):
                    _look(scores, m, node_at, biases, feature_at, features, weight_at, node, weight, own, worth)
                    for child in range(node_at[m + 1] - node_at[m]):
                        log_prob = key - softplus(-scores[child])
                        size, keys, items = heap_push(keys, items, size, log_prob, node_at[m] + child)


@launched(parallel=True)
def _given(
    log_probs, up, leaf, chunk, node_at, first, biases, feature_at, features, weight_at, node, weight, labels, row_at, ids,
    values, threads,
):  # fmt: skip
    for thread in numba.prange(threads):
        scores = np.empty(CHUNK)
        for b in range(thread, row_at.size - 1, threads):
            own, worth = ids[row_at[b] : row_at[b + 1]], values[row_at[b] : row_at[b + 1]]
            for j in range(labels.shape[1]):
                total = 0.0 if labels[b, j] >= 0 else -np.inf
                at = leaf[labels[b, j]] if labels[b, j] >= 0 else -1
                while at >= 0:
                    m = chunk[at]
                    _look(scores, m, node_at, biases, feature_at, features, weight_at, node, weight, own, worth)
                    total -= softplus(-scores[at - node_at[m]])
                    at = up[at]
                log_probs[b, j] = total


@called()
def _look(scores, m, node_at, biases, feature_at, features, weight_at, node, weight, own, worth):
    """Writes the scores of a chunk's nodes for an example to scores[:nodes]."""
    for child in range(node_at[m + 1] - node_at[m]):
        scores[child] = biases[node_at[m] + child]
    place, end = feature_at[m], feature_at[m + 1]
    for j in range(own.size):
        place = seek(features, place, end, own[j])
        if place < end and features[place] == own[j]:
            for w in range(weight_at[place], weight_at[place + 1]):
                scores[node[w]] += weight[w] * worth[j]
