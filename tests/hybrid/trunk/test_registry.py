"""Kinds of trunks are found by name: those of hybrid/trunk/__init__.py, and one of another distribution."""

import itertools
import types

import numpy as np
import pytest

from hybrid import backend, readout, trunk
from hybrid.engine import Embedding, Engine
from tests.support.plugin import offered
from tests.support.small_engine import BATCH, CLASSES, CONTEXT, Feed, assert_same_bits, parameters, through


@pytest.fixture(autouse=True)
def toys(monkeypatch, tmp_path):
    offered(monkeypatch, tmp_path, "linear", "hybrid.trunks")
    offered(monkeypatch, tmp_path, "toy", "hybrid.readouts")


def begun(**options):
    embedding = Embedding(CLASSES, 4, per_example=CONTEXT, spread=0.3)
    dense = trunk.make("linear", embedding.outputs, 6, {"trunk_rate": 0.5}, seed=3)
    output = readout.make("toy", Feed.counts, 6, {"start": 0.01, "rate": 0.1, "seed": 0}, batch=BATCH)
    return Engine(embedding, dense, output, **through(options))


def test_a_trunk_and_a_readout_of_another_distribution_train_are_saved_and_go_on(tmp_path):
    with pytest.raises(ValueError, match="trunk: found 'tower', expected one of attention, linear, mlp"):
        trunk.make("tower", 8, 6, {}, seed=0)
    whole, stopped = begun(micro_batches=2), begun(micro_batches=2)
    losses = [tick.loss for tick in whole.run(Feed(200))]
    assert np.mean(losses[-20:]) < 0.8 * np.mean(losses[:20])
    list(itertools.islice(stopped.run(Feed(200)), 9))
    stopped.save(tmp_path / "checkpoint")
    resumed, _ = Engine.load(tmp_path / "checkpoint")
    assert resumed.trunk.describe() == whole.trunk.describe()
    assert resumed.readout.describe() == whole.readout.describe()
    list(resumed.run(Feed(200)))
    assert_same_bits(parameters(resumed), parameters(whole))
    ids, log_probs = resumed.best(Feed()[0].ids, 3)
    assert ids.shape == (BATCH, 3) and np.isfinite(log_probs).all()


def test_it_computes_where_it_says_that_it_can(monkeypatch):
    assert begun(device="auto").dense.name == "cpu"
    gpu, choose = types.SimpleNamespace(name="cuda:0"), backend.choose
    monkeypatch.setattr(backend, "choose", lambda device=None: gpu if device == "cuda:0" else choose(device))
    with pytest.raises(ValueError, match='device: found "cuda:0", expected one of cpu: a linear trunk runs'):
        begun(device="cuda:0")
