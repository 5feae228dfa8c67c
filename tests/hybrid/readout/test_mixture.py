"""What only a mixture promises."""

import numpy as np
import pytest
from scipy import sparse

from hybrid import SGD, FullReadout, HeadParts, HeadReadout, TreeReadout
from hybrid.readout import MixtureReadout, NeighbourReadout, SampledReadout, make
from tests.support.readouts import BATCH, CLASSES, COUNTS, MAKE, WIDTH, batch, train

WEIGHT = np.linspace(0, 2, BATCH).astype(np.float32)


def parts(**more):
    return [MAKE["huffman"](**more), MAKE["balanced"](**more)]


def test_it_is_the_mean_of_the_probabilities_by_shares():
    mixture = MixtureReadout(parts(rate=0.5))
    train(mixture)
    mixture.shares[:] = 0.3, 0.7
    _, hidden, _ = batch()
    one, other = (np.exp(tree.scores(hidden).astype(float)) for tree in mixture.readouts)
    np.testing.assert_allclose(np.exp(mixture.scores(hidden)), 0.3 * one + 0.7 * other, rtol=1e-5)


@pytest.mark.parametrize("weight", [None, WEIGHT], ids=["plain", "weighed"])
def test_a_step_has_the_gradient_of_the_bound_and_moves_shares_by_responsibilities(weight):
    """Worked in float64. At a rate of 0 of the parts every row sees the same."""
    mixture = MixtureReadout(parts(rate=0.0), pace=0.25)
    for k, part in enumerate(mixture.readouts):
        part.nodes[:] = np.random.default_rng(k).normal(size=part.nodes.shape)
    mixture.shares[:] = shares = np.array([0.3, 0.7])
    grad, hidden, target = batch(seed=7)
    own = np.empty((2, *grad.shape), np.float32)
    for part, gradient in zip(mixture.readouts, own, strict=True):
        part.dry_run(gradient, hidden, target, weight)
    earned = shares[:, None] * np.exp([part.log_prob(hidden, target).astype(float) for part in mixture.readouts])
    duty, given = earned / earned.sum(axis=0), np.ones(BATCH) if weight is None else weight
    loss = pytest.approx(-(given * np.log(earned.sum(axis=0))).mean(), rel=1e-5)
    assert mixture.dry_run(grad, hidden, target, weight) == loss
    np.testing.assert_allclose(grad, np.einsum("kb,kbd->bd", duty, own), atol=1e-5)
    assert mixture.step(grad, hidden, target, weight) == loss
    np.testing.assert_allclose(grad, np.einsum("k,kbd->bd", shares, own), atol=1e-5)
    moved = shares + 0.25 * ((duty - shares[:, None]) * given).mean(axis=1)
    np.testing.assert_allclose(mixture.shares, moved, rtol=1e-5)
    assert mixture.shares.sum() == pytest.approx(1)


def test_parts_move_as_they_would_alone():
    mixture, alone = MixtureReadout(parts(rate=0.3)), parts(rate=0.3)
    train(mixture, 3)
    for part, own in zip(mixture.readouts, alone, strict=True):
        train(own, 3)
        np.testing.assert_array_equal(part.nodes, own.nodes)


@pytest.mark.parametrize(("second", "excluded"), [("tree", True), ("full", False)])
def test_best_is_exact_by_lists_of_any_depth(second, excluded):
    """Two trees that disagree, of so many classes that lists are deepened before all scores are asked."""
    classes, counts = 3000, np.random.default_rng(0).random(3000)
    other = TreeReadout(classes, 4, tree="balanced") if second == "tree" else FullReadout(classes, 4)
    mixture = MixtureReadout([TreeReadout(counts, 4), other])
    rng = np.random.default_rng(1)
    for part in mixture.readouts:
        array = next(iter(part.parameters().values()))
        array[:] = rng.normal(size=array.shape) * 2
    hidden = rng.normal(size=(20, 4)).astype(np.float32)
    hidden[:5] *= 0.02  # nearly uniform: their lists become long
    mask = (rng.random((20, classes)) < 0.3) & excluded
    every = np.where(mask, -np.inf, mixture.scores(hidden))
    ids, found = mixture.best(hidden, 10, sparse.csr_array(mask) if excluded else None)
    np.testing.assert_allclose(found, -np.sort(-every, axis=1)[:, :10], atol=1e-5)
    np.testing.assert_allclose(np.take_along_axis(every, ids.astype(np.int64), axis=1), found, atol=1e-5)
    assert all(len(set(row)) == 10 for row in ids.tolist())


def test_lists_answer_where_few_classes_are_likely(monkeypatch):
    mixture = MixtureReadout([TreeReadout(np.arange(400), 4), TreeReadout(400, 4, tree="balanced")])
    rng = np.random.default_rng(1)
    for part in mixture.readouts:
        part.nodes[:] = 4 * rng.normal(size=part.nodes.shape)
    hidden = 4 * rng.normal(size=(12, 4)).astype(np.float32)
    every, rest, scores = mixture.scores(hidden), [], mixture._scores
    monkeypatch.setattr(mixture, "_scores", lambda out, rows: (rest.append(len(rows)), scores(out, rows)))
    np.testing.assert_allclose(mixture.best(hidden, 3)[1], -np.sort(-every, axis=1)[:, :3], atol=1e-5)
    assert sum(rest) < 6


def test_the_rates_of_parts_keep_their_ratio():
    mixture = MixtureReadout([MAKE["huffman"](rate=0.4), MAKE["full"](rate=0.1)])
    assert mixture.rate == 0.4 and [part.rate for part in mixture.readouts] == [0.4, 0.1]
    mixture.rate = 0.2
    assert [part.rate for part in mixture.readouts] == [0.2, 0.05]


def test_it_is_made_of_options():
    options = {"rate": 0.05, "seed": 1, "readout_optimiser": "adagrad"}
    made = make("mixture", COUNTS, WIDTH, options | {"trees": ["balanced", "huffman", "balanced"]}, batch=BATCH)
    assert [part.shape for part in made.readouts] == ["balanced", "huffman", "balanced"]
    assert len(make("mixture", COUNTS, WIDTH, options, batch=BATCH).readouts) == 2
    with pytest.raises(ValueError, match="trees: found 1001, expected a whole number from 2 to 1000"):
        make("mixture", COUNTS, WIDTH, options | {"trees": ["huffman"] * 1001}, batch=BATCH)


def test_shares_of_a_checkpoint_that_are_none_are_refused():
    mixture = MixtureReadout(parts())
    mixture.shares[0] = np.nan
    with pytest.raises(ValueError, match=r"shares: found .*expected numbers of at least 0 that sum to 1"):
        mixture.restore(mixture.state())


BAD = [
    (lambda: [MAKE["full"]()], "readouts: found 1, expected two or more"),
    (lambda: [MAKE["full"](), SampledReadout(CLASSES, WIDTH)], r"readouts\[1\]: found SampledReadout, expected"),
    (lambda: [NeighbourReadout(MAKE["full"]()), MAKE["full"]()], r"readouts\[0\]: found NeighbourReadout"),
    (lambda: [MAKE["full"](), FullReadout(5, WIDTH)], r"readouts\[1\]: found 5 as classes, expected 37, as of"),
    (lambda: [MAKE["full"](), FullReadout(CLASSES, 2)], r"readouts\[1\]: found 2 as width, expected 6"),
    (lambda: [MAKE["full"]()] * 2, r"readouts\[1\]: found the same readout twice"),
]


@pytest.mark.parametrize(("bad", "message"), BAD)
def test_parts_that_do_not_suit_each_other_are_refused(bad, message):
    with pytest.raises(ValueError, match=message):
        MixtureReadout(bad())


def test_no_part_grows_alone():
    mixture = MixtureReadout(parts())
    with pytest.raises(ValueError, match="add_classes: found a tree of a mixture"):
        mixture.readouts[0].add_classes([1])
    assert mixture.readouts[0].classes == CLASSES


def test_readouts_made_for_batches_of_different_sizes():
    """What is asked of all of them is asked in parts that the smallest has room for."""
    counts, rng = np.arange(1, 301), np.random.default_rng(1)
    hidden = rng.normal(size=(50, WIDTH)).astype(np.float32)
    target = rng.integers(0, 300, 4).astype(np.int32)

    def answers(kind, batches, **more):
        parts = [kind(counts, WIDTH, batch=batch, optimiser=SGD(0.3), **more) for batch in batches]
        readout = MixtureReadout(parts)
        readout.step(np.empty((4, WIDTH), np.float32), hidden[:4], target)
        return *readout.best(hidden, 5), readout.log_prob(hidden, np.arange(50, dtype=np.int32))

    for kind, more in ((TreeReadout, {}), (HeadReadout, {"parts": HeadParts(40, 9)})):
        for found, expected in zip(answers(kind, (64, 4), **more), answers(kind, (64, 64), **more), strict=True):
            np.testing.assert_array_equal(found, expected)
