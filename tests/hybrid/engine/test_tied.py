"""One table for input rows and readout."""

import copy
import itertools
import pickle

import numpy as np
import pytest

from hybrid import SGD, Adagrad
from hybrid.engine import Embedding, Engine
from hybrid.engine.embedding import Inputs
from hybrid.readout import FullReadout, SampledReadout, TreeReadout
from hybrid.trunk.mlp import MLP
from tests.support.small_engine import BATCH, CLASSES, CONTEXT, Feed, assert_same_bits, parameters, through

WIDTH = 6


def parts(readout=FullReadout, rows=CLASSES + 1, source=None, move=SGD):
    embedding = source or Embedding(rows, WIDTH, per_example=CONTEXT, spread=0.3, optimiser=move(0.1))
    output = readout(Feed.counts, WIDTH, batch=BATCH, optimiser=move(0.05))
    return embedding, MLP([WIDTH * CONTEXT, 5, WIDTH]), output


def engine(readout=FullReadout, move=SGD):
    return Engine(*parts(readout, move=move), device="cpu", threads=2, tied=True)


class Pairs(Feed):
    """An id and the one that follows it."""

    def __getitem__(self, tick):
        batch = super().__getitem__(tick)
        return batch._replace(ids=batch.ids[1::CONTEXT])


def test_a_step_moves_one_table_first_as_readout_and_then_as_rows():
    rows = Embedding(CLASSES, WIDTH, spread=0.3, optimiser=SGD(0.1))
    readout = FullReadout(CLASSES, WIDTH, batch=BATCH, optimiser=SGD(0.05))
    alone, batch = copy.deepcopy(readout), Pairs(1)[0]
    alone.weights[:] = rows.table
    hidden = rows.table[batch.ids]
    grad = np.empty_like(hidden)
    loss = alone.step(grad, hidden, batch.target)
    np.subtract.at(alone.weights, batch.ids, np.float32(0.1) * grad)
    made = Engine(rows, None, readout, device="cpu", threads=2, tied=True)
    assert [tick.loss for tick in made.run(Pairs(1))] == [pytest.approx(loss)]
    np.testing.assert_allclose(made.embedding.table, alone.weights, rtol=1e-5, atol=1e-6)
    assert np.shares_memory(made.readout.weights, made.embedding.table)


@pytest.mark.parametrize("readout", [FullReadout, SampledReadout])
def test_it_learns_is_saved_once_and_goes_on_with_the_same_bytes(readout, tmp_path):
    move = Adagrad if readout is FullReadout else SGD
    whole, stopped = engine(readout, move), engine(readout, move)
    losses = [tick.loss for tick in whole.run(Feed(40))]
    assert np.mean(losses[-5:]) < np.mean(losses[:5])
    list(itertools.islice(stopped.run(Feed(40)), 9))
    stopped.save(tmp_path)
    assert "readout.weights" not in parameters(stopped)
    for again in (Engine.load(tmp_path, threads=2)[0], pickle.loads(pickle.dumps(stopped))):
        assert np.shares_memory(again.embedding.table, again.readout.weights)
        list(again.run(Feed(40)))
        assert_same_bits(parameters(again), parameters(whole))


@pytest.mark.parametrize(
    ("change", "options", "message"),
    [
        ({"source": Inputs(WIDTH * CONTEXT)}, {}, "tied: found Inputs, expected an Embedding"),
        ({"rows": CLASSES - 1}, {}, f"found {CLASSES - 1} input rows of width 6, expected at least {CLASSES}"),
        ({"readout": TreeReadout}, {}, "found a tree readout, expected full or sampled"),
        ({}, {"micro_batches": 2}, "micro_batches: found 2, expected 1 with tied=True"),
    ],
)
def test_what_cannot_share_a_table(change, options, message):
    with pytest.raises(ValueError, match=message):
        Engine(*parts(**change), tied=True, **through({"device": "cpu"} | options))
