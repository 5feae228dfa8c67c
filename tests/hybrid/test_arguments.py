"""The least that public functions accept of each number."""

import functools

import numpy as np
import pytest

from hybrid import sparse_label_tree
from hybrid.engine import Embedding, Engine
from hybrid.engine.route import Pipeline
from hybrid.feeds.arrays import ArrayFeed
from hybrid.feeds.video.clips.synthetic import Scene
from hybrid.feeds.video.film import Film
from hybrid.feeds.video.frames import Frames
from hybrid.neighbours import Neighbours
from hybrid.optimisers import SGD
from hybrid.pvm.config import Config, Readout
from hybrid.pvm.model import PVM
from hybrid.readout import FullReadout, HeadReadout, MixtureReadout, NeighbourReadout, TreeReadout
from hybrid.readout.head import HeadParts
from hybrid.readout.sampled import GBCE, SampledSoftmax
from hybrid.schedule.rates import RateSchedule
from hybrid.trunk.mlp import MLP
from hybrid.units import Units


def _clusters(**given):
    return sparse_label_tree.label_clusters(np.eye(4, dtype=np.float32), np.eye(4, dtype=np.float32), **given)


def _full(**given):
    return FullReadout(**{"counts": 9, "width": 3} | given)


def _mixture(**given):
    return MixtureReadout([TreeReadout(np.ones(9), 3), TreeReadout(9, 3, tree="balanced")], **given)


def _config(**given):
    return Config(**{"grids": ((2, 2), (1, 1)), "name": "small"} | given)


SHAPE = (8, 8, 3)
# What is called, and of each number the least that it takes: one less is refused, and of a float any less.
LEAST = [
    (functools.partial(Embedding, 4, 3), {"per_example": 1, "spread": 0.0, "seed": 0}),
    (lambda **given: Embedding(**{"rows": 4, "width": 3} | given), {"rows": 1, "width": 1}),
    (lambda **own: Engine(Embedding(4, 3), None, _full(), pipeline=Pipeline(**own)), {"micro_batches": 1}),
    (RateSchedule, {"warmup": 0}),
    (SGD, {"rate": 0.0, "momentum": 0.0, "decay": 0.0}),
    (_full, {"width": 1, "batch": 1, "seed": 0}),
    (SampledSoftmax, {"negatives": 1}),
    (GBCE, {"calibration": 0.0}),
    (lambda **given: HeadReadout(9, 3, parts=HeadParts(clusters=2, **given)), {"head": 0}),
    (_mixture, {"pace": 0.0}),
    (lambda **given: NeighbourReadout(_full(), index="annoy", **given), {"threads": 1, "exact_below": 0, "trees": 1}),
    (functools.partial(Neighbours, np.eye(9, 3, dtype=np.float32), index="exact"), {"k": 1, "threads": 1}),
    (_clusters, {"arity": 2, "leaves": 1, "seed": 0}),
    (functools.partial(Units, 2, 3, 3, 3), {"momentum": 0.0, "seed": 0}),
    (functools.partial(MLP, [3, 4]), {"dropout": 0.0, "seed": 0}),
    (functools.partial(ArrayFeed, np.zeros((4, 2)), [0, 1, 0, 1]), {"batch": 1, "epochs": 1, "seed": 0}),
    (functools.partial(Scene, SHAPE), {"length": 1, "seed": 0}),
    (functools.partial(Frames, [Scene(SHAPE)]), {"steps": 0}),
    (functools.partial(Frames, [Scene(SHAPE)], 4), {"streams": 1}),
    (functools.partial(Film, "film.gif"), {"rate": 0.01}),
    (functools.partial(PVM, _config()), {"streams": 1, "seed": 0}),
    (_config, {"channels": 1, "fan_in": 1, "lateral_radius": 0.0, "tau": 0.0}),
    (_config, {"steps": 1, "streams": 1, "lateral_at": 0, "feedback_at": 0}),
    (Readout, {"start": 0, "momentum": 0.0}),
]


@pytest.mark.parametrize(("call", "name", "least"), [(call, *one) for call, each in LEAST for one in each.items()])
def test_the_least_is_taken_and_less_is_refused(call, name, least):
    call(**{name: least})
    less = least - (1 if isinstance(least, int) else least or 1e-3)
    with pytest.raises(ValueError, match=f"{name}: found {less!r}, expected"):
        call(**{name: less})
