"""Builders of trees: the shape is a full binary tree, its cost the least, its numbering and its owners as promised."""

import heapq

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bench.oracles import tree as oracle
from bench.oracles.tree import path
from cpu.tree.logistic_rows import OWNERS
from cpu.tree.tree import balanced, breadth_first, huffman, renumbered

COUNTS = st.lists(st.integers(0, 50), min_size=2, max_size=60)


def lengths(tree):
    return np.array([len(path(tree, leaf)) for leaf in range(tree.leaf_up.size)])


def least_cost(counts):
    """Huffman's algorithm as the textbook has it: the sum of all merged weights."""
    heap = list(counts)
    heapq.heapify(heap)
    cost = 0
    while len(heap) > 1:
        merged = heapq.heappop(heap) + heapq.heappop(heap)
        cost += merged
        heapq.heappush(heap, merged)
    return cost


def check_shape(tree):
    """A full binary tree, numbered breadth first, whose fields agree."""
    inner = tree.node_up.size
    assert tree.leaf_up.size == inner + 1 and tree.node_up[0] == -1
    assert tree.leaf_up.dtype == tree.node_up.dtype == tree.children.dtype == np.int32
    assert tree.owner.dtype == np.uint8 and tree.owner.max() < OWNERS

    assert sorted([*tree.leaf_up, *tree.node_up[1:]]) == list(range(2 * inner)), "each place of each node is taken once"
    assert (np.diff(tree.node_up) > 0).all(), "numbered breadth first: children in the order of their parents"
    for item, up in [(~leaf, up) for leaf, up in enumerate(tree.leaf_up)] + list(enumerate(tree.node_up))[1:]:
        assert tree.children[up // 2, up % 2] == item

    depths = lengths(tree)
    assert tree.depth == depths.max()
    assert sum(0.5**depth for depth in depths.tolist()) == 1  # Kraft, exact in binary
    owners = [[tree.owner[node] for node, _ in path(tree, leaf)] for leaf in range(inner + 1)]
    assert all(owner == sorted(owner, reverse=True) for owner in owners), "owners rise on the way up"


@given(COUNTS)
def test_huffman_is_a_tree_of_least_cost(counts):
    tree = huffman(counts)
    check_shape(tree)
    assert np.dot(counts, lengths(tree)) == least_cost(counts)


@given(st.integers(2, 70))
def test_balanced_is_a_tree_of_least_depth_in_order(classes):
    tree = balanced(classes)
    check_shape(tree)
    assert set(lengths(tree)) <= {tree.depth - 1, tree.depth} and 2 ** (tree.depth - 1) < classes <= 2**tree.depth
    turns = ["".join(str(turn) for _, turn in path(tree, leaf)) for leaf in range(classes)]
    assert turns == sorted(turns), "from left to right"


@pytest.mark.parametrize("build", [lambda counts: huffman(counts), lambda counts: balanced(counts.size)])
def test_owners_share_the_visits(build):
    counts = (1e6 / np.arange(1, 20001)).astype(np.int64)
    tree = build(counts)
    weights = counts if tree.depth > 15 else np.ones(counts.size)
    visits = np.zeros(OWNERS)
    for leaf in range(counts.size):
        for node, _ in path(tree, leaf):
            visits[tree.owner[node]] += weights[leaf]
    assert visits.max() < 1.2 * visits.mean()


@pytest.mark.parametrize(
    ("build", "classes"),
    [(balanced, 2), (balanced, 3), (lambda classes: huffman(1000 // np.arange(1, classes + 1)), 40)],
)
def test_nodes_of_any_numbering_are_numbered_breadth_first(build, classes):
    tree, rng = build(classes), np.random.default_rng(0)
    depth = np.array([tree.node_up[0] + 1] * (classes - 1))
    for node in range(1, classes - 1):
        depth[node] = depth[tree.node_up[node] >> 1] + 1
    for _ in range(10):
        name = rng.permutation(classes - 1)  # node n is called name[n]
        leaf_up = 2 * name[tree.leaf_up >> 1] + (tree.leaf_up & 1)
        node_up = np.empty(classes - 1, np.int64)
        node_up[name] = np.where(tree.node_up < 0, -1, 2 * name[tree.node_up >> 1] + (tree.node_up & 1))
        order = breadth_first(node_up, tree.depth)
        np.testing.assert_array_equal(order, name)
        for found, expected in zip(renumbered(leaf_up, node_up, order), (tree.leaf_up, tree.node_up), strict=True):
            np.testing.assert_array_equal(found, expected)
        np.testing.assert_array_equal(breadth_first(node_up, 1), name[depth <= 1])


@pytest.mark.parametrize(
    "build", [lambda: balanced(2), lambda: balanced(77), lambda: huffman(1000 // np.arange(1, 78))]
)
def test_the_classes_of_a_node_are_neighbours(build):
    tree = build()
    rank = tree.ranks()
    assert sorted(rank) == list(range(len(rank)))
    below = {}
    for leaf in range(len(rank)):
        for node, turn in path(tree, leaf):
            below.setdefault((node, turn), []).append(rank[leaf])
    for (node, turn), places in below.items():
        assert max(places) - min(places) == len(places) - 1
        assert turn or max(places) < min(below[node, 1])


@pytest.mark.parametrize("classes", [2, 17, 1000])
@pytest.mark.parametrize("law", ["zipf", "zero", "mixed", "steep"])
def test_the_tree_that_numpy_makes_for_a_gpu_is_that_of_the_kernels(classes, law):
    counts = {
        "zipf": (1e9 / np.arange(1, classes + 1)).astype(np.int64),
        "zero": np.zeros(classes, int),
        "mixed": np.random.default_rng(classes).integers(0, 10**6, classes),
        "steep": 2 ** np.arange(min(classes, 40)),
    }[law]
    found, expected = oracle.huffman(counts), huffman(counts)
    for name in ("leaf_up", "node_up"):
        np.testing.assert_array_equal(getattr(found, name), getattr(expected, name), strict=True)
    assert found.depth == expected.depth and path(found, 1) == path(expected, 1)
    np.testing.assert_array_equal(found.ranks(), expected.ranks(), strict=True)
