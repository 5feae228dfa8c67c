"""Rows and readout that move with each example."""

import itertools
import pickle

import numpy as np
import pytest

from hybrid import SGD, Adagrad, NegativeSampling, Pipeline, RowAdagrad
from hybrid.engine import Embedding, Engine
from hybrid.engine.embedding import Inputs
from hybrid.feeds import Batch
from hybrid.readout import FullReadout, SampledReadout, TreeReadout
from hybrid.trunk.mlp import MLP
from tests.support.small_engine import BATCH, CLASSES, Feed, assert_same_bits, parameters

WIDTH = 6


class Words(Feed):
    """Pairs or bags of the little language, so many a batch, and all of one weight."""

    def __init__(self, ticks=12, bags=False, batch=BATCH, weight=None):
        super().__init__(ticks, bags)
        self.batch, self.weight = batch, weight

    def __getitem__(self, tick):
        rng = np.random.default_rng([self.seed, tick])
        ids = rng.integers(0, CLASSES, (self.batch, 3)).astype(np.int32)
        target = ((ids[:, 1] * 7 + 3) % CLASSES).astype(np.int32)
        bag_at = np.arange(0, ids.size + 1, 3) if self.bags else None
        weight = None if self.weight is None else np.full(self.batch, self.weight, np.float32)
        return Batch(ids.reshape(-1) if self.bags else ids[:, 1].copy(), bag_at, target, weight)


def engine(kind=TreeReadout, bags=False, threads=2, move=SGD, update="online", **options):
    rows = Embedding(CLASSES, WIDTH, bags="undivided" if bags else None, spread=0.3, optimiser=move(0.1))
    more = {"loss": NegativeSampling(4)} if kind is SampledReadout else {}
    readout = kind(Feed.counts, WIDTH, batch=BATCH, optimiser=SGD(0.1), **more)
    return Engine(rows, None, readout, threads=threads, pipeline=Pipeline(update=update), **options)


@pytest.mark.parametrize(
    ("kind", "bags", "weight", "move"),
    [(TreeReadout, True, 0.5, Adagrad), (SampledReadout, False, None, RowAdagrad), (TreeReadout, False, None, SGD)],
)
def test_batches_of_one_example_learn_as_in_batches(kind, bags, weight, move):
    feed = Words(40, bags, batch=1, weight=weight)
    made = [engine(kind, bags, move=move, update=update) for update in ("online", "batch")]
    losses = [[tick.loss for tick in one.run(feed)] for one in made]
    np.testing.assert_allclose(*losses, rtol=1e-4)
    for name, found in parameters(made[0]).items():
        np.testing.assert_allclose(found, parameters(made[1])[name], rtol=0, atol=1e-5, err_msg=name)


@pytest.mark.parametrize(("kind", "bags"), [(TreeReadout, True), (SampledReadout, False)])
def test_it_learns_and_goes_on_with_the_same_bytes(kind, bags, tmp_path):
    whole, stopped = (engine(kind, bags, threads=threads) for threads in (1, 2))
    losses = [tick.loss for tick in whole.run(Words(200, bags))]
    assert np.mean(losses[-20:]) < np.mean(losses[:20]) - 0.3
    list(itertools.islice(stopped.run(Words(200, bags)), 9))
    stopped.save(tmp_path)
    for again in (Engine.load(tmp_path, threads=2)[0], pickle.loads(pickle.dumps(stopped))):
        assert again.update == "online"
        list(again.run(Words(200, bags)))
        assert_same_bits(parameters(again), parameters(whole))


def test_batches_of_examples_change_nothing_under_a_tree():
    """The rates stand still, and no run of a target is cut."""
    large, small = (engine(schedule="constant") for _ in range(2))
    batches = [Words(10)[tick] for tick in range(10)]

    class Cut(Words):
        def __getitem__(self, tick):
            batch, part = batches[tick // 2], slice(tick % 2 * 8, tick % 2 * 8 + 8)
            return Batch(batch.ids[part], None, batch.target[part])

    assert all(batch.target[7] != batch.target[8] for batch in batches)
    list(large.run(Words(10)))
    list(small.run(Cut(20)))
    assert_same_bits(parameters(large), parameters(small))


def test_numbers_that_are_not_finite_name_the_tick():
    made = engine()
    made.embedding.table[:] = np.float32(1e30)
    with pytest.raises(FloatingPointError, match="tick 0"), np.errstate(all="ignore"):
        list(made.run(Words(3)))


def rows(**settings):
    return Embedding(CLASSES, WIDTH, **settings)


def tree(width=WIDTH, **settings):
    return TreeReadout(Feed.counts, width, batch=BATCH, **settings)


@pytest.mark.parametrize(
    "parts, options, message",
    [
        (lambda: (rows(), MLP([WIDTH, 5, WIDTH]), tree()), {}, "with a trunk, expected 'batch'"),
        (lambda: (rows(), None, FullReadout(CLASSES, WIDTH)), {}, "this full readout, expected a tree"),
        (lambda: (rows(), None, SampledReadout(Feed.counts, WIDTH)), {}, "this sampled readout"),
        (lambda: (rows(), None, tree(optimiser="adagrad")), {}, "with plain SGD and no biases"),
        (lambda: (rows(), None, tree(biases=True)), {}, "with plain SGD and no biases"),
        (lambda: (rows(bags="mean"), None, tree()), {}, "bags='undivided'"),
        (lambda: (rows(per_example=2), None, tree(2 * WIDTH)), {}, "one id per example"),
        (lambda: (Inputs(WIDTH), None, tree()), {}, "expected an embedding"),
        (lambda: (rows(), None, tree()), {"update": "never"}, "update: found 'never', expected one of batch, online"),
    ],
)
def test_parts_that_cannot_say_why(parts, options, message):
    with pytest.raises(ValueError, match=message):
        Engine(*parts(), pipeline=Pipeline(**{"update": "online"} | options))


def test_several_targets_an_example_are_refused():
    class Several(Words):
        def __getitem__(self, tick):
            batch = super().__getitem__(tick)
            return batch._replace(target_at=np.arange(BATCH + 1))

    with pytest.raises(ValueError, match="target_at"):
        list(engine().run(Several(2)))
