"""Engines of a few rows under each readout, the little language that they learn, and what they hold."""

import dataclasses

import numpy as np

from hybrid import SGD, Pipeline, RateSchedule, SampledSoftmax
from hybrid.engine import Engine
from hybrid.engine.embedding import Embedding
from hybrid.feeds import Batch
from hybrid.readout import FullReadout, SampledReadout, TreeReadout
from hybrid.trunk.mlp import MLP

CLASSES, CONTEXT, BATCH = 30, 3, 16
MODELS = {  # as the command line makes them
    "language": {"kind": "tree"},
    "language, full": {"kind": "full"},
    "factors": {"kind": "sampled", "bags": True},
    "words": {"kind": "tree", "trunk": False},
    "words, cbow": {"kind": "sampled", "trunk": False, "bags": True},
}


class Feed:
    """A little language: the next token is a fixed function of the last but one, most of the time."""

    rows = classes = CLASSES
    batch, most_ids = BATCH, BATCH * CONTEXT
    counts = np.arange(CLASSES, 0, -1)

    def __init__(self, ticks=12, bags=False, seed=0):
        self.epochs, self.ticks_per_epoch, self.bags, self.seed = 1, ticks, bags, seed

    def __len__(self):
        return self.ticks_per_epoch

    def __getitem__(self, tick):
        rng = np.random.default_rng([self.seed, tick])
        ids = rng.integers(0, CLASSES, (BATCH, CONTEXT)).astype(np.int32)
        target = (ids[:, 1] * 7 + 3) % CLASSES
        bag_at = np.arange(0, ids.size + 1, CONTEXT) if self.bags else None
        return Batch(ids.reshape(-1), bag_at, target.astype(np.int32))

    def describe(self):
        return {"kind": "test", "seed": self.seed}


def through(options):
    """Arguments of an Engine that uses 2 threads: those of its Pipeline, and a warm-up, stand beside the others."""
    own = {"threads": 2} | options
    parts = {field.name: own.pop(field.name) for field in dataclasses.fields(Pipeline) if field.name in own}
    if "warmup" in own:
        own["schedule"] = RateSchedule(own.get("schedule", "linear"), own.pop("warmup"))
    return own | {"pipeline": Pipeline(**parts)}


def of_context(bags):
    """The arguments of an Embedding, whose examples are CONTEXT ids."""
    return {"bags": "mean"} if bags else {"per_example": CONTEXT}


def engine(kind="tree", trunk=True, bags=False, rate=0.05, **options):
    embedding = Embedding(CLASSES, 4, **of_context(bags), spread=0.3, optimiser=SGD(rate))
    dense = MLP([embedding.outputs, 10, 6], optimiser=SGD(rate * 2, momentum=0.5)) if trunk else None
    width = 6 if trunk else embedding.outputs
    made = {
        "tree": lambda: TreeReadout(Feed.counts, width, batch=BATCH, optimiser=SGD(rate)),
        "full": lambda: FullReadout(Feed.counts, width, batch=BATCH, optimiser=SGD(rate)),
        "sampled": lambda: SampledReadout(Feed.counts, width, batch=BATCH, optimiser=SGD(rate), loss=SampledSoftmax(8)),
    }
    return Engine(embedding, dense, made[kind](), **through(options))


def parameters(engine):
    return {name: array.copy() for name, array in engine.parameters().items()}


def assert_same_bits(first, second):
    assert first.keys() == second.keys()
    for name in first:
        assert first[name].tobytes() == second[name].tobytes(), name


# How an engine may run its stages
WAYS = {
    "serial": {"overlap": False},
    "overlapped": {"overlap": True},
    "measured": {"overlap": None, "threads": 4},
}
