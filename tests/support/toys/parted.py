"""A vector that ranks move together, each its part; the numbers are those of one rank. Something may go wrong on one."""

import dataclasses
import errno
import os
import signal
import sys
import time
from typing import NamedTuple

import numpy as np

from hybrid.mpi.group import Group
from hybrid.settings import option, positive, whole
from hybrid.storage import checkpoint
from hybrid.train.job import Job, Watched
from tests.support.full_disk import Disk, Fault

FILES = ("seeds.txt",)
RANKS = True
WIDTH = 10


@dataclasses.dataclass(frozen=True)
class Options:
    epochs: int = option(3, "passes of eight ticks", group="training", type=positive)
    pause: int = option(0, "milliseconds of a tick", group="training", type=whole, free=True, kept=False)
    ill: str | None = option(None, "WHAT RANK TICK", group="training", free=True, kept=False)


@dataclasses.dataclass(frozen=True)
class Evaluation:
    pass


class Tick(NamedTuple):
    examples: int
    loss: float


class Seeds:
    """One number a tick."""

    def __init__(self, epochs):
        self.epochs, self.ticks_per_epoch = epochs, 8

    def __len__(self):
        return self.epochs * self.ticks_per_epoch

    def describe(self):
        return {"kind": "seeds", "epochs": self.epochs}


class Parted:
    torn = None

    def __init__(self, options, tick=0):
        self.tick, self.numbers, self.ranks = tick, np.arange(WIDTH, dtype=float), Group()
        self.parts = np.array_split(self.numbers, self.ranks.size)
        self.options = options

    def run(self, seeds):
        for tick in range(self.tick, len(seeds)):
            time.sleep(self.options["pause"] / 1000)
            befall(self.options, self.ranks.rank, tick)
            own = self.parts[self.ranks.rank]
            own += 0.1 * (np.cos(tick) - own * self.numbers.sum() / WIDTH)
            self.ranks.join(self.numbers, [len(part) for part in self.parts])
            self.tick = tick + 1
            yield Tick(1, float(np.abs(self.numbers).sum()))

    def save(self, folder, facts):
        def write():
            checkpoint.save(folder, {"numbers": self.numbers}, {"tick": self.tick, "facts": facts})

        self.ranks.once(write)


def befall(options, rank, tick):
    """What goes wrong, where it is to go wrong here and now."""
    if not options["ill"]:
        return
    what, who, when = options["ill"].split()
    if (rank, tick) != (int(who), int(when)):
        return
    if what == "raise":
        raise RuntimeError("boom")
    if what == "feed":
        raise ValueError("the feed broke")
    if what == "kill":
        os.kill(os.getpid(), signal.SIGKILL)
    if what == "full":
        Disk(options["out"] or options["resume"], Fault(0, errno.ENOSPC), lambda *_: None)
    if what == "long":
        end = time.monotonic() + 8
        while time.monotonic() < end:  # Python's global lock changes hands, no more
            pass
    if what == "ready":
        print("ready", file=sys.stderr, flush=True)


class Moving(Job):
    watched = Watched("length")

    def __init__(self, options):
        self.options, self.feed = options, Seeds(options["epochs"])

    def make(self):
        return Parted(self.options)

    def keep(self, folder):
        (folder / "seeds.txt").write_text("cosines\n")

    def measure(self, model, facts):
        return super().measure(model, facts) | {"length": float(np.linalg.norm(model.numbers)) + model.ranks.rank}

    def draw(self, folder, report, model):
        (folder / "curve.csv").write_text(f"{len(report['curve'])} points\n")


def prepare(options):
    return Moving(options)


def load(source, options):
    arrays, facts = checkpoint.load(source)
    model = Parted(options, facts["tick"])
    model.numbers[:] = arrays["numbers"]
    return model, facts["facts"]


def evaluate(run, given):
    return {"length": float(np.linalg.norm(run.load().numbers))}
