"""What only one kind of readout promises; trees: hybrid/readout/tree.py too."""

import numpy as np
import pytest
from scipy import sparse

from hybrid.readout import FullReadout, NeighbourReadout, SampledReadout, TreeReadout, make, rebuild


def batch(classes, width, rows=32, seed=0):
    rng = np.random.default_rng(seed)
    hidden = rng.normal(size=(rows, width)).astype(np.float32)
    return np.empty_like(hidden), hidden, rng.integers(0, classes, rows).astype(np.int32)


def test_full_is_the_float64_oracle():
    classes, width = 300, 8
    readout = FullReadout(classes, width, batch=32, rate=0.2)
    weights = np.zeros((classes, width))
    for seed in range(10):
        grad, hidden, target = batch(classes, width, seed=seed)
        logits = hidden.astype(float) @ weights.T
        p = np.exp(logits) / np.exp(logits).sum(axis=1, keepdims=True)
        expected = -np.log(p[np.arange(32), target]).mean()
        p[np.arange(32), target] -= 1
        loss = readout.step(grad, hidden, target)
        assert loss == pytest.approx(expected, rel=1e-5)
        np.testing.assert_allclose(grad, p @ weights, atol=1e-5)
        weights -= 0.2 * p.T @ hidden
        np.testing.assert_allclose(readout.weights, weights, atol=1e-5)


def test_all_classes_sampled_is_the_full_readout():
    full, sampled = FullReadout(50, 4, rate=0.1), SampledReadout(50, 4, negatives=50, rate=0.1)
    for seed in range(5):
        grad, hidden, target = batch(50, 4, seed=seed)
        other = np.empty_like(grad)
        assert sampled.step(grad, hidden, target) == pytest.approx(full.step(other, hidden, target), rel=1e-5)
        np.testing.assert_allclose(grad, other, atol=1e-6)
    np.testing.assert_allclose(sampled.weights, full.weights, atol=1e-6)


def test_negatives_follow_the_seed_and_the_tick():
    def weights(seed, skipped):
        readout = SampledReadout(500, 4, loss="logistic", rate=0.1, seed=seed)
        readout.restore({"tick": skipped})
        for at in range(2):
            readout.step(*batch(500, 4, seed=at))
        return readout.weights.tobytes()

    assert weights(1, 0) == weights(1, 0)
    assert len({weights(1, 0), weights(2, 0), weights(1, 1)}) == 3


def test_a_tick_of_a_checkpoint_that_is_none_is_refused():
    for tick in (-1, 2**63, 1.5):
        with pytest.raises(ValueError, match=f"tick: found {tick}, expected a whole number from 0"):
            SampledReadout(50, 4).restore({"tick": tick})


def test_the_defaults_of_sampled_readouts():
    for loss, classes, expected in (
        ("softmax", 5000, 1024),
        ("softmax", 90, 90),
        ("logistic", 90, 5),
        ("gbce", 900, 256),
    ):
        readout = SampledReadout(np.ones(classes), 4, loss=loss)
        assert (readout.negatives, readout.calibration) == (expected, 0.75)


def test_gbce_with_all_classes_as_negatives_is_a_logistic_regression_a_class():
    """Then beta is 1 at any calibration: slopes of the loss, by the formula in float64."""
    readout = SampledReadout(50, 4, loss="gbce", negatives=50, calibration=0.9, rate=0.1)
    assert readout.draws == "uniform"
    grad, hidden, target = batch(50, 4)
    assert readout.step(grad, hidden, target) == pytest.approx(50 * np.log(2), rel=1e-5)
    yes = np.eye(50)[target]
    np.testing.assert_allclose(readout.weights, 0.1 * (yes - 0.5).T @ hidden, atol=1e-5)


@pytest.mark.parametrize("loss", ["softmax", "logistic", "gbce"])
def test_a_sampled_readout_tells_every_class_that_it_moved(loss):
    """Targets and negatives: a forest over the weights searches them exactly until it is built anew."""
    readout = SampledReadout(500, 4, loss=loss, negatives=20, rate=0.1)
    readout.step(*batch(500, 4))
    before = readout.weights.copy()
    grad, hidden, target = batch(500, 4, seed=1)
    readout.step(grad, hidden, target)
    changed = np.flatnonzero((readout.weights != before).any(axis=1))
    assert set(changed) <= set(readout.moved) and set(target) <= set(readout.moved)
    assert set(changed) - set(target)
    told, _ = readout.moved, readout.losses(hidden, target)  # which draws too, and moves nothing
    assert readout.moved is told


def test_a_tree_of_more_classes_than_its_pointers_can_name_is_refused_before_it_takes_memory():
    with pytest.raises(ValueError, match="classes: found 1073741825, expected at most 1073741824"):
        TreeReadout(2**30 + 1, 1, tree="balanced")


@pytest.mark.parametrize("kind", [TreeReadout, SampledReadout])
def test_counts_of_a_checkpoint_that_are_none_are_refused(kind):
    readout = kind(np.arange(1, 9), 4)
    readout.parameters()["counts"][3] = np.nan
    with pytest.raises(ValueError, match=r"counts\[3\]: found nan, expected a finite number"):
        readout.restore(readout.state())


def test_a_tree_given_as_an_array_is_refused_by_name():
    with pytest.raises(ValueError, match="tree: found ndarray, expected one of huffman, balanced"):
        TreeReadout([1, 2], 4, tree=np.zeros(3))


@pytest.mark.parametrize(("tree", "split"), [("huffman", 1), ("balanced", 7), ("huffman", 59)])
def test_a_split_tree_has_the_probabilities_of_the_whole(tree, split):
    """And goes on from its checkpoint: the parameters are the same arrays."""
    whole, parted = (TreeReadout(np.arange(60), 5, tree=tree, rate=0.3, split=k) for k in (0, split))
    for seed in range(8):
        parted.step(*batch(60, 5, seed=seed))
    for name, array in whole.parameters().items():
        np.copyto(array, parted.parameters()[name])
    whole.restore(parted.state())
    _, hidden, target = batch(60, 5, seed=9)
    np.testing.assert_allclose(parted.log_prob(hidden, target), whole.log_prob(hidden, target), atol=1e-5)
    for one, other in zip(parted.best(hidden, 4), whole.best(hidden, 4), strict=True):
        np.testing.assert_array_equal(one, other)


@pytest.fixture
def indexed():
    """A sampled readout of weights as training leaves them, in groups, under a forest."""
    inner = SampledReadout(3000, 16, negatives=64, batch=32, rate=0.1)
    rng = np.random.default_rng(0)
    centres = rng.normal(size=(150, 16))
    inner.weights[:] = centres[rng.integers(0, 150, 3000)] + 0.3 * rng.normal(size=(3000, 16))
    readout = NeighbourReadout(inner, exact_below=0)
    readout.build()
    return readout


def test_the_forest_is_asked_for_as_many_more_as_are_left_out(indexed):
    _, hidden, _ = batch(3000, 16)
    seen, _ = indexed.readout.best(hidden, 200)  # so none of the first 200 may come
    exclude = sparse.csr_array((np.ones(seen.size), seen.ravel(), np.arange(33) * 200), (32, 3000))
    ids, _ = indexed.best(hidden, 10, exclude)
    truth, _ = indexed.readout.best(hidden, 10, exclude)
    assert not any(np.isin(a, b).any() for a, b in zip(ids, seen, strict=True)) and (ids >= 0).all()
    assert np.mean([np.isin(a, b).mean() for a, b in zip(truth, ids, strict=True)]) > 0.9


def test_classes_that_learned_since_are_found(indexed):
    """Targets and negatives of a step are searched exactly until the next index; their logits are the new ones."""
    grad, hidden, target = batch(3000, 16)
    for _ in range(30):
        indexed.step(grad, hidden, target)
    np.testing.assert_array_equal(indexed.best(hidden, 1)[0], indexed.readout.best(hidden, 1)[0])
    stale = indexed._neighbours._changed.copy()
    assert stale[target].all() and not stale.all()
    indexed.rebuild().result(30)
    assert not indexed._neighbours._changed.any()


def test_after_a_restore_the_search_is_exact(indexed):
    indexed.readout.weights[:] *= -1
    indexed.restore(indexed.state())
    assert indexed.recall(batch(3000, 16)[1], 10) == 1


def test_neighbours_as_csr(indexed):
    _, hidden, _ = batch(3000, 16)
    exclude = sparse.csr_array(np.ones((32, 3000)))
    exclude[0, 5:] = 0
    exclude.eliminate_zeros()
    exclude[1:] = 0
    exclude.eliminate_zeros()
    ids, logits = indexed.best(hidden, 7, exclude)
    found = indexed.neighbours(hidden, 7, exclude)
    assert found.shape == (32, 3000) and not found[0, :5].nnz
    np.testing.assert_array_equal(found.indices.reshape(32, 7), ids)
    np.testing.assert_array_equal(found.data.reshape(32, 7), logits)


def tended(steps=0, **more):
    """A readout that builds its index itself, after some steps; and the steps after which it began to."""
    inner = SampledReadout(60, 4, negatives=3, batch=8, rate=0.1)
    inner.weights[:] = np.random.default_rng(0).normal(size=(60, 4))
    readout, began = NeighbourReadout(inner, trees=2, exact_below=0, **more), []
    rebuild_now = readout.rebuild

    def rebuild():
        began.append(readout._steps)
        future = rebuild_now()
        future.result(30)  # no thread is ahead of the next step
        return future

    readout.rebuild = rebuild
    grad = np.empty((8, 4), np.float32)
    for seed in range(steps):
        _, hidden, target = batch(60, 4, 8, seed)
        readout.step(grad, hidden, target)
    return readout, began


def test_a_sampled_readout_is_rebuilt_with_counts_where_it_had_them():
    for known in (np.arange(9, 0, -1), 9):
        facts = SampledReadout(known, 4).describe()
        assert rebuild(facts).describe() == facts


def test_a_sampled_readout_is_under_a_trunk_unless_said_otherwise():
    options = {"rate": 0.1, "seed": 0}
    assert make("sampled", np.ones(9), 4, options, batch=4).loss == "softmax"
    assert make("sampled", np.ones(9), 4, options, batch=4, trunk=False).loss == "logistic"


def test_training_itself_builds_the_index_anew():
    """After every so many steps, as many as the state counts; or where enough classes have moved; a user need not."""
    assert tended(9, every=4)[1] == [4, 8] and tended(9)[1] == []
    readout, began = tended(6, moved=0.5)
    assert began[0] == 1 and 2 <= len(began) < 6  # the first is begun at once
    readout, began = tended(6, every=4)
    goes_on = rebuild(readout.describe())
    goes_on.restore(readout.state())
    assert (goes_on._steps, goes_on.every) == (6, 4) and "steps" not in tended(2)[0].state()
    assert readout._neighbours._index is not None and readout.best(batch(60, 4)[1], 3)[0].shape == (32, 3)


def test_a_rebuild_that_fails_is_told_once_and_training_goes_on(monkeypatch, capsys):
    from cpu.search import index

    def fail(*given):
        raise MemoryError("no room")

    monkeypatch.setattr(index, "make", fail)
    (readout, began), builds = tended(every=1), []
    readout.rebuild = lambda: builds.append(type(readout).rebuild(readout))
    for seed in range(3):
        grad, hidden, target = batch(60, 4, 8, seed)
        readout.step(grad, hidden, target)
        builds[-1].exception()
    assert capsys.readouterr().err.count("neighbours: the index was not built anew: no room") == 2 and not began


def test_figures_of_the_index_on_the_hidden_vectors_that_were_met_last(indexed):
    _, hidden, target = batch(3000, 16)
    assert indexed.figures() == {}
    indexed.log_prob(hidden, target)
    told = indexed.figures()
    assert told["neighbours recall@10"] == pytest.approx(indexed.recall(hidden, 10))
    assert min(told["neighbours queries/s"], told["exact queries/s"]) > 0
    indexed.send()  # other weights: as it stands, the search is exact
    assert indexed.figures(build=False)["neighbours recall@10"] == 1 and not indexed._neighbours.built


def test_options_name_a_readout_of_neighbours():
    given = {"negatives": None, "rate": 0.1, "seed": 3, "readout_optimiser": "adagrad"}
    given["recall"] = 0.9
    made = make("neighbours", np.ones(9), 6, given, batch=4)
    assert isinstance(made, NeighbourReadout) and type(made.readout) is SampledReadout
    facts = made.describe()
    assert {"index": "auto", "recall": 0.9}.items() <= facts.items()
    assert facts["readout"]["optimiser"] == "adagrad" and rebuild(facts).describe() == facts
    for wrong, message in (
        ({"recall": 2.0}, "recall: found 2.0, expected a number above 0, at most 1"),
        ({"biases": True}, "readout: found one with biases"),
    ):
        with pytest.raises(ValueError, match=message):
            make("neighbours", np.ones(9), 6, given | wrong, batch=4)
