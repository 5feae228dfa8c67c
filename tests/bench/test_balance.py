"""How evenly a tree's step is shared: counted by hand on a tree of four classes, then what holds on any."""

import numpy as np
import pytest

from bench import balance
from cpu.tree import balanced, huffman, path
from cpu.tree_batch import _climb, _compare, workspace
from cpu.tree_crowds import crowds
from tests.support.bench_command import measured

FOUR = balance.paths(balanced(4), np.arange(4))  # one example a class: the root has 4 visits, each child 2


def test_paths_are_those_of_the_tree_from_the_leaf_up():
    tree = huffman([8, 4, 2, 1])
    for leaf, way in enumerate(balance.paths(tree, np.arange(4))):
        nodes = [node for node, _ in path(tree, leaf)][::-1]
        assert way.tolist() == nodes + [-1] * (3 - len(nodes))


@pytest.mark.parametrize(
    ("owner", "most", "met"), [([0, 0, 0], 8, 1), ([1, 1, 0], 6, 1.5), ([1, 0, 0], 4, 2), ([2, 1, 0], 4, 2)]
)
def test_the_largest_owner_by_hand(owner, most, met):
    """The root's four visits are the least that the largest has, however many owners there are."""
    assert balance.by_owner(FOUR, np.array(owner, np.uint8)) == most
    assert balance.owners_met(FOUR, np.array(owner, np.uint8)) == met


@pytest.mark.parametrize(
    ("together", "threads", "most"),
    [
        (1, 1, 3 * 8),
        (1, 2, 2 * 4 + 4),  # score and move of the root, beside both children; gradients of two examples
        (1, 4, 2 * 4 + 2),
        (2, 2, 2 * 4 + (2 + 2 * 2 + 2)),  # only the root is crowded; a thread's own child: scores, gradients, moves
        (4, 2, (2 * 4 + 2) + 4),  # no node is crowded: the root moves last
        (4, 4, 2 * 2 + 4),  # nor does a child move before: it moves beside the root
    ],
)
def test_the_largest_thread_of_a_batch_by_hand(together, threads, most):
    assert balance.by_batch(FOUR, together, threads) == most


@pytest.mark.parametrize("together", [1, 5, 64, 200])
def test_one_thread_has_all_passes_and_crowded_nodes_are_the_kernels(together):
    tree, rng = huffman(1000 // np.arange(1, 301)), np.random.default_rng(0)
    target = rng.geometric(0.05, 200).clip(1, 300).astype(np.int32) - 1
    order = np.argsort(tree.ranks()[target], kind="stable")
    way = balance.paths(tree, target[order])
    assert balance.by_batch(way, together, 1) == 3 * (way >= 0).sum()
    work = workspace(200, 4, tree.depth, together, np.float32)
    known = work.entries, work.lengths, work.shared, work.crowded
    _climb(*known[:2], tree.leaf_up, tree.node_up, target, 1)
    _compare(*known, order, 1)
    found = crowds(*known[1:], order, together)
    counts = np.bincount(way[way >= 0])
    # without other work, all of the largest crowd's scores and moves are one thread's, and each example is another's
    assert sorted(found[:, 2] - found[:, 1]) == sorted(counts[counts > together])
    assert balance.by_batch(way, together, 10**4) >= 2 * max(counts[counts > together], default=0)


def test_the_command_counts_what_must_hold(tmp_path):
    """Nobody has less than the mean, no owner less than the root; up to four threads, four owners are an owner a thread."""
    printed, found = measured("balance", tmp_path, "--quick", "--together", "32")
    others = found[-2 * len(balance.THREADS) :]
    assert [one.threads for one in others] == 2 * list(balance.THREADS), "of other steps"
    del found[-2 * len(balance.THREADS) :]
    assert [(one.classes, one.threads) for one in found] == [(v, t) for v in balance.FEW for t in balance.THREADS]
    for one in found:
        assert min(one.few, one.owned, one.batch, one.whole) >= 1 / one.threads and one.together == 32
        assert one.owned >= one.root == pytest.approx(1 / one.path) and 1 <= one.met <= one.path
        assert one.few == one.owned if one.threads <= 4 else one.few > one.owned
    assert printed.count("\n| ") == 4 * (1 + len(balance.THREADS)) and "32 with 32 together" in printed


def test_the_table_names_the_mode_that_helps():
    helps = balance._helps
    assert helps(8, 0.1, 0.15, {"a": 0.12, "b": 0.11}) == "owners", "they can be even"
    assert helps(32, 0.1, 0.1, {"a": 0.09, "b": 0.08}) == "b"
    assert helps(32, 0.1, 0.1, {"a": 0.11, "b": 0.12}) == "owners", "no mode has less"
