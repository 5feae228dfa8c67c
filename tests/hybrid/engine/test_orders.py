"""Whatever order the stages complete in, the numbers are those of the serial order, and nothing is allocated on the way."""

import random
import time

import numpy as np
import pytest

import cpu.device
from hybrid import AdamW, Pipeline
from hybrid.engine import Engine
from hybrid.engine.embedding import Embedding
from hybrid.feeds import Batch
from hybrid.readout import FullReadout, TreeReadout
from hybrid.trunk.mlp import MLP
from tests.hybrid.rise import rise
from tests.support.small_engine import BATCH, CLASSES, CONTEXT, MODELS, Feed, assert_same_bits, engine, parameters


@pytest.fixture
def hostile(monkeypatch):
    """Queues that wait for a random time before and after their work, by a seed that the test sets."""
    rng = random.Random()
    do = cpu.device.Queue._do

    def late(queue, *arguments):
        time.sleep(rng.random() ** 4 * 1e-3)
        result = do(queue, *arguments)
        time.sleep(rng.random() ** 4 * 1e-3)
        return result

    monkeypatch.setattr(cpu.device.Queue, "_do", late)
    return rng.seed


def outcome(model, **options):
    bags = MODELS[model].get("bags", False)
    trained = engine(**MODELS[model], device="cpu", micro_batches=2, **options)
    losses = [tick.loss for tick in trained.run(Feed(4, bags=bags))]
    return losses, parameters(trained)


@pytest.mark.parametrize("model", MODELS)
def test_overlapped_equals_serial_bit_for_bit_in_hostile_orders(hostile, model):
    losses, expected = outcome(model, overlap=False, threads=1)
    overlap = MODELS[model].get("trunk", True)  # without a trunk there is nothing to overlap but the feed
    for seed in range(10 if overlap else 3):
        hostile(seed)
        others, found = outcome(model, overlap=overlap if seed else None, threads=3 if seed else 4)
        assert others == losses, seed
        assert_same_bits(found, expected)


@pytest.mark.parametrize(("kind", "overlap", "deep"), [(TreeReadout, True, False), (FullReadout, False, True)])
def test_no_array_is_allocated_in_the_loop(kind, overlap, deep):
    """Beyond what a tick's own Python objects take, memory does not rise, not even for a moment, once the run is warm."""
    width, batch = 32, 2048
    embedding = Embedding(CLASSES, width, per_example=CONTEXT)
    made = kind(Feed.counts, width, batch=batch)
    every = {"dropout": 0.1, "optimiser": AdamW(clip=1.0)}
    dense = MLP((embedding.outputs, 64, 64, width), **every) if deep else MLP([embedding.outputs, 64, width])
    trained = Engine(embedding, dense, made, threads=2, device="cpu", pipeline=Pipeline(overlap=overlap))
    risen = rise(trained.run(Prepared(batch)))
    assert risen < batch * width, f"{risen} bytes"  # less than a byte for each number of a hidden vector


class Prepared(Feed):
    """Batches that are there before the run."""

    def __init__(self, batch):
        super().__init__(ticks=40)
        self.batch, self.most_ids = batch, batch * CONTEXT
        made = [super(Prepared, self).__getitem__(tick) for tick in range(batch // BATCH)]
        ids, target = (np.concatenate([getattr(part, name) for part in made]) for name in ("ids", "target"))
        self._whole = Batch(ids, None, target)

    def __getitem__(self, tick):
        return self._whole
