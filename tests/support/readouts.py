"""A readout of every kind, batches for it, and what a test asks of it."""

import functools
import json

import numpy as np

from hybrid import GBCE, SGD, HeadParts, SampledSoftmax, trees
from hybrid.readout import (
    FullReadout,
    HeadReadout,
    MixtureReadout,
    NeighbourReadout,
    SampledReadout,
    TreeReadout,
    rebuild,
)

CLASSES, WIDTH, BATCH = 37, 6, 16
COUNTS = np.arange(CLASSES)[::-1]


@functools.cache
def given_tree():
    """Made where it is asked for: all who collect tests would compile its kernels at once."""
    return trees.clustered(np.random.default_rng(7).normal(size=(CLASSES, 4)), COUNTS)


def rated(make, kind=SGD):
    """The same, by an optimiser of this kind; rate: None is that of the readout."""
    return lambda rate=None, **more: make(**{"optimiser": kind(rate)} | more)


MAKE = {
    "huffman": lambda **more: TreeReadout(COUNTS, WIDTH, batch=BATCH, **more),
    "balanced": lambda **more: TreeReadout(CLASSES, WIDTH, tree="balanced", batch=BATCH, **more),
    "given": lambda **more: TreeReadout(COUNTS, WIDTH, tree=given_tree(), batch=BATCH, **more),
    "full": lambda **more: FullReadout(COUNTS, WIDTH, batch=BATCH, **more),
    "head": lambda **more: HeadReadout(COUNTS, WIDTH, batch=BATCH, parts=HeadParts(9, 10, seed=5), **more),
    "sampled": lambda **more: SampledReadout(COUNTS, WIDTH, batch=BATCH, seed=5, loss=SampledSoftmax(20), **more),
    "log-uniform": lambda **more: SampledReadout(CLASSES, WIDTH, batch=BATCH, seed=5, loss=SampledSoftmax(20), **more),
    "logistic": lambda **more: SampledReadout(COUNTS, WIDTH, batch=BATCH, seed=5, loss="logistic", **more),
    "mixture": lambda **more: MixtureReadout([MAKE["huffman"](**more), MAKE["balanced"](**more)], pace=0.1),
    "gbce": lambda **more: SampledReadout(COUNTS, WIDTH, batch=BATCH, seed=5, loss=GBCE(20), **more),
    "neighbours": lambda **more: NeighbourReadout(
        FullReadout(COUNTS, WIDTH, batch=BATCH, seed=5, **more), index="annoy"
    ),
}
MAKE = {kind: rated(make) for kind, make in MAKE.items()}


def batch(rows=BATCH, seed=0):
    rng = np.random.default_rng(seed)
    hidden = rng.normal(size=(rows, WIDTH)).astype(np.float32)
    return np.full_like(hidden, np.nan), hidden, rng.integers(0, CLASSES, rows).astype(np.int32)


def train(readout, steps=5, first=0):
    return [readout.step(*batch(seed=seed)) for seed in range(first, first + steps)]


def frozen(readout):
    return b"".join(array.tobytes() for array in readout.parameters().values()), readout.state()


def reloaded(readout):
    """Another one, made of what a checkpoint keeps."""
    again = rebuild(json.loads(json.dumps(readout.describe())))
    for name, array in again.parameters().items():
        np.copyto(array, readout.parameters()[name])
    again.restore(json.loads(json.dumps(readout.state())))
    return again


def every(readout, hidden):
    """Log-probabilities of all classes, (B, V), one class after another."""
    classes = np.arange(readout.classes, dtype=np.int32)
    rows = np.repeat(hidden, classes.size, axis=0)
    return readout.log_prob(rows, np.tile(classes, len(hidden))).reshape(-1, classes.size)


def changed(array, place, value):
    array = array.copy()
    array[place] = value
    return array
