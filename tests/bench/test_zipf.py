"""Sums in closed form beside the sums themselves, and beside a Huffman tree."""

import numpy as np
import pytest

from bench import zipf
from cpu import tree


@pytest.fixture(scope="module", params=[1_000, 30_000])
def planted(request):
    """Chances of classes, and their Huffman tree with the depth of each node."""
    met = (1e12 / np.arange(1, request.param + 1)).astype(np.int64)
    made = tree.huffman(met)
    depth = np.zeros(request.param - 1, int)
    for node in range(1, depth.size):
        depth[node] = depth[made.node_up[node] >> 1] + 1
    return met / met.sum(), made, depth


def test_shares_are_those_of_the_sums(planted):
    chance, *_ = planted
    assert zipf.total(chance.size) == pytest.approx((1 / np.arange(1, chance.size + 1)).sum())
    assert zipf.share(0, 100, chance.size) == pytest.approx(chance[:100].sum(), rel=1e-5)
    assert zipf.share(100, 700, chance.size) == pytest.approx(chance[100:700].sum(), rel=1e-3)


def test_a_path_is_as_long_as_the_entropy(planted):
    chance, made, depth = planted
    assert zipf.path(chance.size) == pytest.approx(-(chance * np.log2(chance)).sum(), abs=1e-3)
    assert zipf.path(chance.size) == pytest.approx((chance * (depth[made.leaf_up >> 1] + 1)).sum(), abs=0.05)


def test_nodes_behind_the_first_ones_are_a_part_of_the_path(planted):
    """The closed form takes the tree to be full down to one depth: half a node too many at most."""
    chance, made, depth = planted
    behind = np.zeros(depth.size)
    for node in range(1, depth.size):
        behind[node] = behind[made.node_up[node] >> 1] + (node >= 256)
    found = (chance * behind[made.leaf_up >> 1]).sum()
    assert found <= zipf.beyond(chance.size, 256) <= found + 0.5
    assert zipf.beyond(1_000, 1e6) == 0
