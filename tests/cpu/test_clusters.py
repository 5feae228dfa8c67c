"""Classes side by side: parts are equal and made of what is alike, cuts lie where they are asked for, depths stay bounded."""

import itertools

import numpy as np
import pytest

from cpu.tree import clusters


def groups(count, size, rng):
    """(count * size, 8) vectors in groups of one direction, shuffled, of any length; and the group of each."""
    group = rng.permutation(np.repeat(np.arange(count), size))
    near = rng.normal(size=(count, 8))[group] + 0.01 * rng.normal(size=(count * size, 8))
    return (near * rng.uniform(0.1, 10, (count * size, 1))).astype(np.float32), group


def between(unit, left):
    """The objective of spherical 2-means."""
    return np.linalg.norm(unit[left].sum(0)) + np.linalg.norm(unit[~left].sum(0))


def test_halves_are_the_best_of_all(threads):
    unit = np.random.default_rng(1).normal(size=(8, 3))
    unit /= np.linalg.norm(unit, axis=1, keepdims=True)
    masks = [np.isin(np.arange(8), chosen) for chosen in itertools.combinations(range(8), 4)]
    best = max(between(unit, mask) for mask in masks)
    found = max(between(unit, clusters.equal(unit, 2, seed=seed) == 0) for seed in range(8))
    np.testing.assert_allclose(found, best, rtol=1e-6)


def test_parts_are_equal_and_alike(threads):
    vectors, group = groups(8, 50, np.random.default_rng(0))
    part = clusters.equal(vectors, 8)
    assert part.dtype == np.int32
    pairs = np.unique(np.column_stack([group, part]), axis=0)
    assert len(pairs) == 8, "each part is a group"
    assert (np.bincount(clusters.equal(vectors, 7)) // 57 == 1).all(), "57 or 58 of 400"
    assert np.array_equal(part, clusters.equal(vectors, 8)), "a function of its arguments"


def test_vectors_without_a_direction_are_divided_all_the_same():
    for same in (np.zeros((10, 4)), np.ones((10, 4)), np.full((10, 4), 1e38)):
        assert np.bincount(clusters.equal(same, 4)).tolist() == [2, 3, 2, 3]
        assert np.ptp(depths(*clusters.binary(same, 9))) == 1
    half = np.concatenate([np.zeros((4, 2)), np.eye(2)[[0] * 4]])
    assert np.array_equal(clusters.equal(half, 2), clusters.equal(half * 1e-30, 2))


def test_large_segments_are_split_by_a_sample():
    vectors, group = groups(2, 20_000, np.random.default_rng(3))
    part = clusters.equal(vectors, 2)
    assert len(np.unique(np.column_stack([group, part]), axis=0)) == 2


def depths(leaf_up, node_up):
    """Nodes on the path of each class; parents come before their children."""
    depth = np.ones(node_up.size, int)
    for node in range(1, node_up.size):
        depth[node] += depth[node_up[node] >> 1]
    return depth[leaf_up >> 1]


@pytest.mark.parametrize("depth", [9, 11, 20])
def test_no_path_is_longer_than_asked(threads, depth):
    lengths = depths(*clusters.binary(np.random.default_rng(4).normal(size=(300, 8)), depth))
    assert lengths.max() <= depth and (0.5**lengths).sum() == 1


@pytest.mark.parametrize("widest", [12, 7])
def test_a_free_cut_is_the_best_of_all(widest):
    """By the share of the keys' spread that lies between the sides."""
    rng = np.random.default_rng(6)
    for _ in range(20):
        key = rng.normal(size=12).astype(np.float32)
        ranked = np.argsort(-key)
        scores = {}
        for left in range(max(1, 12 - widest), min(12, widest + 1)):
            one, other = key[ranked[:left]].astype(float), key[ranked[left:]].astype(float)
            between = left * (one.mean() - key.mean()) ** 2 + (12 - left) * (other.mean() - key.mean()) ** 2
            scores[left] = between / (12 * key.astype(float).var())
        found = clusters._best_cut.py_func(key, ranked, widest)
        assert scores[found] == pytest.approx(max(scores.values()), rel=1e-6)


@pytest.mark.parametrize("between", [1.0, 0.05])
def test_a_free_cut_lies_between_groups_however_near_they_are(between):
    vectors = np.array([[1.0, between]] * 5 + [[1.0, -between]] * 15)
    leaf_up, node_up = clusters.binary(vectors, 10)
    top = leaf_up.copy()
    while (top > 1).any():
        top = np.where(top > 1, node_up[top >> 1], top)
    assert len(np.unique(top[:5])) == len(np.unique(top[5:])) == 1 and top[0] != top[5]
