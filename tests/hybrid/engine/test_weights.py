"""Weights of examples, several targets and values of bags, through a whole engine.

Here is tested hybrid/schedule/slot.py too.
"""

import numpy as np
import pytest

from hybrid import SGD
from hybrid.engine import Engine
from hybrid.engine.embedding import Embedding, Inputs
from hybrid.feeds import Batch
from hybrid.readout import FullReadout
from hybrid.trunk.mlp import MLP
from tests.support.points import Given
from tests.support.small_engine import BATCH, CLASSES, Feed, assert_same_bits, engine, parameters, through


class Padded(Feed):
    """Every second example has no weight; the others have one of theirs."""

    weight = np.arange(BATCH, dtype=np.float32) % 2

    def __getitem__(self, tick):
        return super().__getitem__(tick)._replace(weight=self.weight)


class Half(Feed):
    """Those examples are not there."""

    def __getitem__(self, tick):
        batch = super().__getitem__(tick)
        return batch._replace(ids=batch.ids.reshape(BATCH, -1)[1::2].reshape(-1), target=batch.target[1::2])


def run(feed, trained):
    losses = [tick.loss for tick in trained.run(feed)]
    return losses, trained.evaluate(feed), parameters(trained)


@pytest.mark.parametrize(  # of a sampled readout negatives are drawn for a batch: they differ where examples are left out
    ("kind", "options"),
    [("tree", {"micro_batches": 2, "overlap": True}), ("full", {}), ("tree", {"trunk": False})],
)
def test_examples_of_no_weight_are_as_if_they_were_not_there(kind, options):
    padded, half = (run(feed, engine(kind, **options)) for feed in (Padded(12), Half(12)))
    alike(padded, half)


def test_a_batch_without_any_weight_moves_nothing():
    feed = Padded(3)
    feed.weight = np.zeros(BATCH, np.float32)
    trained = engine("full")
    before = parameters(trained)
    assert [tick.loss for tick in trained.run(feed)] == [0, 0, 0]
    assert_same_bits(parameters(trained), before)


def labels(several):
    """Points with two labels each, or each point twice with one label of half the weight."""
    batches = []
    for tick in range(10):
        rng = np.random.default_rng(tick)
        x, target = rng.normal(size=(6, 4)).astype(np.float32), rng.integers(0, 7, 12).astype(np.int32)
        if several:
            batches.append(Batch(None, None, target, x=x, target_at=np.arange(0, 13, 2)))
        else:
            batches.append(Batch(None, None, target, np.full(12, 0.5, np.float32), x=np.repeat(x, 2, axis=0)))
    return Given(7, *batches)


@pytest.mark.parametrize(("trunk", "options"), [(True, {"micro_batches": 2}), (False, {})])
def test_an_example_of_several_targets_is_as_several_of_a_share_of_its_weight(trunk, options):
    found = []
    for several in (True, False):
        net = MLP([4, 6, 3], optimiser=SGD(0.1)) if trunk else None
        readout = FullReadout(7, 3 if trunk else 4, batch=12, optimiser=SGD(0.1))
        found.append(run(labels(several), Engine(Inputs(4), net, readout, **through(options))))
    alike(*found)


def alike(one, other):
    """Losses of ticks, of an evaluation, and parameters."""
    np.testing.assert_allclose(one[0], other[0], rtol=1e-5)
    np.testing.assert_allclose(one[1], other[1], rtol=1e-5)
    for name, array in one[2].items():
        np.testing.assert_allclose(array, other[2][name], rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize("several", [False, property()], ids=["it says no", "it says nothing"])
def test_a_readout_that_takes_one_target_says_so_by_tick(several):
    trained = Engine(Inputs(4), None, FullReadout(7, 4, batch=12), threads=1)
    trained.readout.__class__ = type("One", (FullReadout,), {"multi_target": several})
    with pytest.raises(ValueError, match=r"Given\[0\]: target_at: found an array, expected None: this readout"):
        list(trained.run(labels(True)))


class Valued(Feed):
    """Bags whose rows are multiplied, or the same bags with rows repeated."""

    most_ids = 4 * BATCH

    def __init__(self, weighted):
        super().__init__(12, bags=True)
        self.weighted = weighted

    def __getitem__(self, tick):
        rng = np.random.default_rng([self.seed, tick])
        ids = rng.integers(0, CLASSES, (BATCH, 2)).astype(np.int32)
        target = ((ids[:, 1] * 7 + 3) % CLASSES).astype(np.int32)
        if self.weighted:
            values = np.tile(np.array([0.25, 0.75], np.float32), BATCH)
            return Batch(ids.reshape(-1), np.arange(0, 2 * BATCH + 1, 2), target, values=values)
        return Batch(ids[:, [0, 1, 1, 1]].reshape(-1), np.arange(0, 4 * BATCH + 1, 4), target)


def test_bags_with_values_are_sums_of_their_rows_by_them():
    found = []
    for weighted in (True, False):
        bags, readout = "weighted" if weighted else "mean", FullReadout(CLASSES, 6, batch=BATCH, optimiser=SGD(0.05))
        rows = Embedding(CLASSES, 4, bags=bags, optimiser=SGD(0.05), spread=0.3)
        trained = Engine(rows, MLP([4, 10, 6], optimiser=SGD(0.1)), readout, threads=2)
        found.append(run(Valued(weighted), trained))
    alike(*found)


X, TARGET = np.ones((2, 3), np.float32), np.array([1, 2], np.int32)
COUNTS = Batch(None, None, TARGET, np.full(2, 0.05, np.float32), x=X)
OF_NO_WEIGHT = Batch(None, None, TARGET, np.zeros(2, np.float32), x=X)
OF_NO_TARGET = Batch(None, None, TARGET[:0], x=X, target_at=np.zeros(3, np.int64))


def test_a_batch_of_no_weight_or_target_does_not_count_in_an_evaluation():
    untrained = Engine(Inputs(3), None, FullReadout(4, 3, batch=2), threads=1)
    found = [untrained.evaluate(Given(4, COUNTS, *more)) for more in ((), (OF_NO_WEIGHT,), (OF_NO_TARGET,))]
    np.testing.assert_allclose(found, np.log(4), rtol=1e-6)
    with pytest.raises(ValueError, match="the feed has no example with a target and a weight above 0"):
        untrained.evaluate(Given(4, OF_NO_WEIGHT, OF_NO_TARGET))
