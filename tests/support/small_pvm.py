"""A Predictive Vision Model of a few units, a feed of a square that moves, and how both are compared."""

import dataclasses
from types import SimpleNamespace

import numpy as np

from hybrid.pvm.config import Config, Readout

TINY = Config(
    grids=((3, 4), (2, 2), (1, 1)),
    block=(2, 3),
    hidden=(5, 4, 7),
    schedule=((0, None, 0.05, 0.3),),
    readout=Readout(hidden=(6,), schedule=((0, 0.5),)),
)
FRAME = TINY.frame
BLIND = dataclasses.replace(TINY, readout=None)


class Scene:
    """A square that moves over noise that does not, in every stream from another place; a feed of so many ticks."""

    def __init__(self, ticks=24, streams=1, seed=0, labelled=True):
        self.ticks, self.streams, self.labelled = ticks, streams, labelled
        self.noise = np.random.default_rng(seed).integers(0, 90, FRAME).astype(np.uint8)

    def __len__(self):
        return self.ticks

    def __getitem__(self, tick):
        images = np.repeat(self.noise[None], self.streams, 0)
        box = np.zeros((self.streams, 4), np.float32)
        for stream in range(self.streams):
            y, x = (tick + stream) % 4, (tick + 3 * stream) % 9
            images[stream, y : y + 2, x : x + 3] = 255
            box[stream] = x, y, 3, 2
        return SimpleNamespace(image=images, box=box, labelled=np.full(self.streams, self.labelled))


def bytes_of(model):
    return {name: array.tobytes() for name, array in model.fetch().items()} | {"step": model.tick}


def walk(model, feed, until=None):
    """Step by step through a feed, from where the model stands."""
    seen = []
    for tick in range(model.tick, until or len(feed)):
        batch = feed[tick]
        one = model.streams == 1
        image, box = (part[0] if one else part for part in (batch.image, batch.box))
        seen.append(model.step(image, (box if one else list(box)) if batch.labelled.all() else None))
    return seen


def assert_same(found, expected):
    """Two lists of what was seen, bit for bit."""
    assert [seen.tick for seen in found] == [seen.tick for seen in expected]
    for one, other in zip(found, expected, strict=True):
        for a, b in zip(_parts(one), _parts(other), strict=True):
            assert a.dtype == b.dtype and a.tobytes() == b.tobytes()


def _parts(seen):
    return [seen.error, seen.prediction, *seen.hidden, *seen.heatmaps]
