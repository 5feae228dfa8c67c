"""SparseLabelTree, one tree and several, and the clusters of labels that it is made of."""

import numpy as np
import pytest
from scipy import sparse

from cpu.sparse_label_tree import from_parents
from hybrid import NodeSolver, SparseLabelTree, label_clusters
from tests.support.sparse_label_trees import examples


@pytest.fixture(scope="module")
def data():
    return *examples(), examples(seed=1)[0]


@pytest.fixture(scope="module", params=[1, 3])
def model(data, request):
    return SparseLabelTree(*data[:2], trees=request.param, leaves=10)


def test_questions_agree(model, data):
    every = model.scores(data[2])
    ids, log_probs = model.best(data[2], 4)
    np.testing.assert_allclose(log_probs, -np.sort(-every, axis=1)[:, :4], atol=1e-6)
    np.testing.assert_allclose(np.take_along_axis(every, ids.astype(int), 1), log_probs, atol=1e-6)
    likely = model.likely(data[2], 0.1)
    np.testing.assert_allclose(likely.toarray(), np.where(every >= np.log(0.1), np.exp(every), 0), rtol=1e-5)
    assert likely.nnz
    assert model.likely(data[2], 1).nnz == (every >= 0).sum()


def test_several_trees_are_averaged(data):
    alone = [SparseLabelTree(*data[:2], leaves=10, seed=seed) for seed in (4, 5)]
    both = SparseLabelTree(*data[:2], leaves=10, seed=4, trees=2)
    mean = np.mean([np.exp(one.scores(data[2])) for one in alone], axis=0)
    np.testing.assert_allclose(np.exp(both.scores(data[2])), mean, rtol=1e-5)
    assert abs(np.exp(alone[0].scores(data[2])) - mean).max() > 0.02


def test_a_tree_that_is_given_and_weights_of_examples(data):
    x, y, _ = data
    tree = [-1] + [0] * y.shape[1], np.arange(1, y.shape[1] + 1)
    weight = (np.arange(120) % 2).astype(float)
    exact = {"trees": tree, "solver": NodeSolver(tolerance=1e-3, passes=1000, least=0)}
    one = SparseLabelTree(x, y, weight=weight, **exact).scores(x)
    np.testing.assert_allclose(one, SparseLabelTree(x[1::2], y[1::2], **exact).scores(x), atol=0.02)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"features": np.ones((3, 2))}, r"found features \(3, 2\) and labels \(120, 45\)"),
        ({"features": sparse.csr_array([[np.nan]] * 120)}, "features"),
        ({"trees": ([-1, 0, 0], [1, 2])}, "found 2 leaves, expected 45"),
        ({"trees": 101}, "trees: found 101, expected a whole number from 1 to 100"),
        ({"weight": -np.ones(120)}, r"weight: found float64 \(120,\), expected 120 numbers of at least 0"),
        ({"leaves": 0}, "leaves: found 0"),
        ({"trees": 0}, "trees: found 0"),
        ({"seed": -1}, "seed: found -1"),
    ],
)
def test_what_it_refuses(data, change, message):
    given = {"features": data[0], "labels": data[1]} | change
    with pytest.raises(ValueError, match=message):
        SparseLabelTree(**given)


def test_a_solver_that_cannot_be():
    with pytest.raises(ValueError, match=r"C 0, tolerance 0\.1: expected numbers above 0"):
        NodeSolver(C=0)
    with pytest.raises(ValueError, match="passes: found 0, expected a whole number of at least 1"):
        NodeSolver(passes=0)
    for name in ("C", "tolerance", "least"):
        with pytest.raises(ValueError, match=f"{name}: found -0.001, expected a finite number of at least 0"):
            NodeSolver(**{name: -1e-3})


def test_questions_that_it_refuses(model, data):
    with pytest.raises(ValueError, match="features: found"):
        model.best(data[2][:, :3], 1)
    with pytest.raises(ValueError, match="k: found 99"):
        model.best(data[2], 99)
    for threshold in (-0.5, 0, 1.01, np.nan):
        with pytest.raises(ValueError, match="threshold: found"):
            model.likely(data[2], threshold)


@pytest.mark.parametrize(
    ("name", "change", "message"),
    [
        ("up", lambda up: up[::-1].copy(), "hang from no root"),
        ("leaf", lambda leaf: leaf[:-1], "leaf: expected one label"),
        ("biases", lambda biases: biases[:-1], "biases: found"),
        ("biases", lambda biases: biases * np.float32(np.nan), "with finite weights"),
        ("feature_at", lambda at: at[::-1].copy(), "feature_at: found no numbers that rise"),
        ("feature", lambda ids: ids + 10**8, "feature: found ids outside 0 to"),
        ("feature", lambda ids: ids * 0, "feature: found ids that do not rise"),
        ("node", lambda node: node + np.int8(40), "node: found other nodes"),
        ("weight", lambda weight: None, "weight: found"),
    ],
)
def test_arrays_that_could_lead_a_search_astray_are_refused(data, name, change, message):
    model = SparseLabelTree(*data[:2], leaves=10)
    arrays = model.arrays | {f"000.{name}": change(model.arrays[f"000.{name}"])}
    with pytest.raises(ValueError, match=message):
        SparseLabelTree.of(arrays, model.features, model.labels)


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
    assert tree.leaf.size == labels and (children[inner] == arity).all()
    assert children[above_leaves].max() <= max(leaves, arity)
    assert children[above_leaves].min() >= max(leaves, arity) // arity


@pytest.mark.parametrize("arity, number", [(2, 4), (3, 3)])  # where it is odd, the sides of a cut are unequal
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


def test_examples_and_labels_that_do_not_fit():
    x, y = topics(2, 4)
    with pytest.raises(ValueError, match=r"found features \(16, 6\) and labels \(3, 4\)"):
        label_clusters(x, y[:3])
    with pytest.raises(ValueError, match=r"labels \(16, 1\), .* at least 2 labels"):
        label_clusters(x, y[:, :1])
