"""Trees from clusters of labels."""

import numpy as np
import pytest
from scipy import sparse

from cpu.label_tree import from_parents
from hybrid import label_clusters


def topics(count, labels, seed=0):
    """Examples of one label each; labels 0, count, 2 count ... share a topic, whose features they have."""
    label = np.arange(4 * labels) % labels
    x = np.random.default_rng(seed).poisson(0.05 + (label[:, None] % count == np.arange(3 * count) // 3))
    return sparse.csr_array(x), sparse.csr_array(label[:, None] == np.arange(labels))


@pytest.mark.parametrize(("arity", "leaves", "labels"), [(2, 4, 37), (3, 5, 40), (16, 100, 90), (2, 1, 9)])
def test_it_is_a_balanced_tree_over_all_labels(arity, leaves, labels):
    tree = from_parents(*label_clusters(*topics(4, labels), arity=arity, leaves=leaves))
    children = np.diff(tree.child_at)
    above_leaves = np.unique(tree.up[tree.leaf])
    inner = np.setdiff1d(np.flatnonzero(children), above_leaves)
    assert (
        tree.leaf.size == labels
        and (children[inner] == arity).all()
        and children[above_leaves].max() <= max(leaves, arity)
    )
    assert children[above_leaves].min() >= max(leaves, arity) // arity


@pytest.mark.parametrize(
    "arity, number", [(2, 4), (3, 3)]
)  # with an odd arity the two sides of a cut are of unequal size
def test_likes_hang_together(arity, number):
    for seed in range(3):
        parents, leaf = label_clusters(*topics(number, 8 * number), arity=arity, leaves=8, seed=seed)
        assert all(len(set(parents[leaf[topic::number]])) == 1 for topic in range(number))


def test_a_seed_decides_and_labels_without_examples_have_a_place():
    x, y = topics(4, 32)
    y = sparse.csr_array(y.toarray() * (np.arange(32) > 5))
    first, again, other = (label_clusters(x, y, leaves=4, seed=seed) for seed in (1, 1, 2))
    assert all(one.tobytes() == two.tobytes() for one, two in zip(first, again, strict=True))
    assert any(one.tobytes() != two.tobytes() for one, two in zip(first, other, strict=True))
    assert from_parents(*first).leaf.size == 32


def test_what_it_refuses():
    x, y = topics(2, 4)
    with pytest.raises(ValueError, match=r"found features \(16, 6\) and labels \(3, 4\)"):
        label_clusters(x, y[:3])
    with pytest.raises(ValueError, match=r"labels \(16, 1\), .* at least 2 labels"):
        label_clusters(x, y[:, :1])
    with pytest.raises(ValueError, match="arity: found 1"):
        label_clusters(x, y, arity=1)
