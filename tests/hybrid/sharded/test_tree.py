"""A tree in shards: losses, gradients, nodes and answers of one process, to the bit, at any number of ranks.

Also of cpu/tree_shard.py and hybrid/sharded/walk.py.
"""

import contextlib

import numpy as np
import pytest

from hybrid.ranks.group import Group
from hybrid.readout import TreeReadout
from hybrid.sharded.tree import OWNERS, ShardedTree
from tests.support import rank_tree
from tests.support.ranks import ended, started


@pytest.mark.parametrize("ranks", [2, 3, 4])
def test_as_one_process_to_the_bit(ranks):
    code, out, err = ended(started(ranks=ranks, module="tests.support.rank_tree"), limit=200)
    assert (code, out, err) == (0, "right\n", "")


@pytest.mark.parametrize("case", rank_tree.CASES)
def test_alone_as_one_process_to_the_bit(case):
    assert rank_tree.differs(Group(), "all", case) == []


def test_at_any_number_of_threads(threads):
    assert rank_tree.differs(Group(), "all", rank_tree.CASES[0]) == []


class Rank:
    """A rank that needs to hear nobody to know which nodes it has."""

    def __init__(self, rank, size):
        self.rank, self.size = rank, size

    def share(self, array, rank=0):
        pass

    def together(self):
        return contextlib.nullcontext()


@pytest.mark.parametrize("size", [2, 4, 8])
def test_no_rank_has_many_more_nodes_than_its_share(size):
    classes = 100_000
    counts = 100 * classes // np.arange(1, classes + 1)
    trees = [ShardedTree(Rank(rank, size), counts, 1) for rank in range(size)]
    nodes = [tree.part.nodes for tree in trees]
    np.testing.assert_array_equal(np.sort(np.concatenate(nodes)), np.arange(classes - 1))
    assert max(map(len, nodes)) <= 1.3 * (classes - 1) / size
    assert all(tree.nodes.nbytes == 4 * len(own) for tree, own in zip(trees, nodes, strict=True))


def test_a_checkpoint_tells_of_a_tree_of_one_process():
    for owners in (4, OWNERS):
        settings = {"tree": "balanced", "optimiser": "adagrad", "biases": True, "owners": owners}
        assert ShardedTree(Group(), 9, 3, **settings).describe() == TreeReadout(9, 3, **settings).describe()


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"owners": 3}, "owners: found 3, expected an even number"),
        ({"batch": 2}, "target: found 3, expected at most 2"),
    ],
)
def test_what_shards_do_not_do_is_refused_by_name(settings, said):
    with pytest.raises(ValueError, match=said):
        tree = ShardedTree(Group(), np.ones(9), 3, **settings)
        tree.step(np.empty((3, 3), np.float32), np.zeros((3, 3), np.float32), np.zeros(3, np.int32))


def test_more_ranks_than_owners_and_hidden_vectors_of_others_are_refused():
    with pytest.raises(ValueError, match="owners: found 4, expected a whole number from 6 to 64"):
        ShardedTree(Rank(0, 6), np.ones(9), 3, owners=4)
    tree = ShardedTree(Rank(1, 3), np.ones(9), 3)
    with pytest.raises(ValueError, match="hidden: found 9 rows, expected 3, the examples of rank 1"):
        tree.log_prob(np.zeros((9, 3), np.float32), np.zeros(9, np.int32), np.array([0, 3, 6, 9]))
    with pytest.raises(ValueError, match="hidden: found 3 rows, expected 9, one a target"):
        tree.log_prob(np.zeros((3, 3), np.float32), np.zeros(9, np.int32))
    with pytest.raises(TypeError, match="readout: found one in shards"):
        tree.__reduce__()
