"""A line through points, y = slope x + offset, by stochastic gradient descent in NumPy."""

import dataclasses
import os
from typing import NamedTuple

import numpy as np

from hybrid.settings import number, option, positive
from hybrid.storage import checkpoint
from hybrid.train.job import Job, Watched

FILES = ()


@dataclasses.dataclass(frozen=True)
class Options:
    points: str | None = option(None, "a line x,y a point", group="data", needed=True, type=os.path.abspath)
    epochs: int = option(3, "passes over the points", group="training", type=positive)
    rate: float = option(0.1, "learning rate", group="training", type=number)


@dataclasses.dataclass(frozen=True)
class Evaluation:
    at: float = option(0.0, "where to read the line", type=number, metavar="X")


class Tick(NamedTuple):
    examples: int
    loss: float


class Points:
    """One point a tick, in the order of the file."""

    def __init__(self, path, epochs):
        self.xy, self.epochs = np.loadtxt(path, delimiter=","), epochs
        self.ticks_per_epoch = len(self.xy)

    def __len__(self):
        return self.epochs * self.ticks_per_epoch

    def describe(self):
        return {"kind": "points", "epochs": self.epochs, "sum": float(self.xy.sum())}


class Line:
    torn = None

    def __init__(self, rate, tick=0):
        self.rate, self.tick, self.weights = rate, tick, np.zeros(2)

    def run(self, points):
        for tick in range(self.tick, len(points)):
            x, y = points.xy[tick % points.ticks_per_epoch]
            miss = self.weights @ (x, 1) - y
            self.weights -= self.rate * miss * np.array([x, 1])
            self.tick = tick + 1
            yield Tick(1, miss**2 / 2)

    def save(self, folder, facts):
        checkpoint.save(folder, {"weights": self.weights}, {"tick": self.tick, "facts": facts})


class Fitting(Job):
    watched = Watched("error")

    def __init__(self, options):
        self.rate, self.feed = options["rate"], Points(options["points"], options["epochs"])

    def make(self):
        return Line(self.rate)

    def measure(self, model, facts):
        x, y = self.feed.xy.T
        error = np.abs(model.weights[0] * x + model.weights[1] - y).mean()
        return super().measure(model, facts) | {"error": float(error)}


def prepare(options):
    return Fitting(options)


def load(source, options):
    arrays, facts = checkpoint.load(source)
    line = Line(options["rate"], facts["tick"])
    line.weights[:] = arrays["weights"]
    return line, facts["facts"]


def evaluate(run, given):
    slope, offset = run.load().weights.tolist()
    return {"slope": slope, "offset": offset, "y": slope * given["at"] + offset}
