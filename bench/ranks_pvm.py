"""Ticks of a Predictive Vision Model on the ranks of this run; all of them call each function, and rank 0 knows the figures.

A stand-in: each rank computes a range of units of the cost that its own share has, and exchanges messages of the size that
its own have, so the time is that of a model on ranks, and the numbers are not.
"""

import dataclasses
import time
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from bench.ranks_cut import Cut, bands, cut, graph
from hybrid import contract
from hybrid.pvm import presets
from hybrid.pvm.config import Config
from hybrid.pvm.model import PVM
from hybrid.ranks.group import Group
from hybrid.ranks.pingpong import Messages

RATE, SECONDS = 0.001, 0.2  # seconds of a sample, about
MESHES = {"mesh1m": 6, "mesh100m": 47, "mesh1g": 148}  # units a side of a flat layer whose units read their neighbours
Note = Callable[[str, float, float], Any]  # what was done, from when to when


def configuration(name: str) -> Config:
    """One of the package's, or a mesh; it learns from the first tick on."""
    if name in MESHES:
        side = MESHES[name]
        flat = presets.load("flat210m")[0]
        config = dataclasses.replace(flat, name=name, grids=((side, side),), lateral_radius=2.0, self_context=True)
    else:
        config = dataclasses.replace(presets.load(name)[0], readout=None)
    return dataclasses.replace(config, schedule=((0, None, RATE, max(event[3] or 0 for event in config.schedule)),))


def no_note(name: str, start: float, end: float) -> None:
    """Nothing is noted."""


class Share:
    """The units of a model that this rank computes: those from `first` to before `last`, which have `weights`."""

    def __init__(self, config: Config, group: Group):
        self.group, self.model = group, PVM(config, device="cpu", threads=1)
        pipeline = self.model.pipeline
        layout, state = pipeline.layout, pipeline.state
        self._starts = np.append(layout.w_at[layout.layer_at[:-1]], self.model.weights.size)
        units = len(self._starts) - 1
        miss, speed = np.zeros(units, np.float32), np.zeros((2, units), np.float32)
        speed[:] = np.stack(config.rates(0))[:, pipeline.wiring.layer]
        learns = np.ones(units, np.uint8)
        self.frame = np.random.default_rng(0).integers(0, 256, (1, pipeline.frame_size), np.uint8)
        self._now = contract.State(
            state["world_1"], state["tape_0"], state["signals_0"], state["integral"], pipeline.delta,
            state.get("low"), state.get("high"), miss, pipeline.weights, pipeline.velocity,
        )  # fmt: skip
        self._past = contract.Past(state["world_0"], state["tape_1"], state["tape_2"], state["signals_1"])
        self._learning = contract.Learning(speed[0], speed[1], learns, learns, predict_first=True)
        self._plan, self._kernels = pipeline.plan, pipeline.backend.pvm
        self._gathering, self._activation = contract.Gathering(0.8, 0.1, config.tau, 1.0, 1.0), config.activation

    def take(self, parts: int) -> None:
        """Have 1 / parts of the model's cost, a unit at least, at the place of this rank."""
        rank, all_of_it = self.group.rank, int(self._starts[-1])
        ends = np.searchsorted(self._starts, [all_of_it * rank // parts, all_of_it * (rank + 1) // parts])
        self.first, self.last = int(ends[0]), max(int(ends[1]), int(ends[0]) + 1)
        self.weights = int(self._starts[self.last] - self._starts[self.first])

    def show(self) -> None:
        """Take in a frame, the whole of it."""
        self._kernels.show(self._past.world, self.frame, 1 / 255)

    def move(self, first: int, last: int) -> None:
        """Some units learn and predict."""
        if last > first:
            given = self._past, self._learning, self._gathering, self._activation
            self._kernels.tick(self._now, self._plan, *given, first, last)

    def compute(self) -> None:
        """A tick of all units of the share, of which nobody is told."""
        self.show()
        self.move(self.first, self.last)

    def edge(self, weights: float) -> int:
        """The end of the first units of the share that have so many weights."""
        return min(int(np.searchsorted(self._starts, self._starts[self.first] + weights)), self.last)


class Ticks:
    """A model on all ranks, tick by tick."""

    def __init__(self, config: Config, group: Group):
        self.share, units = Share(config, group), graph(config)
        self.share.take(group.size)
        self.cut: Cut = cut(units, bands(units, group.size), group.size)
        self._edge = self.share.edge(self.cut.shared[group.rank])
        gone = {to: np.zeros(size, np.uint8) for to, size in self.cut.sends[group.rank].items()}
        come = {
            of: np.zeros(sends[group.rank], np.uint8) for of, sends in enumerate(self.cut.sends) if group.rank in sends
        }
        self._exchange = group.exchange(gone, come)

    def tick(self, note: Note = no_note) -> None:
        """Units that others read; then the others, beside the exchange; wait for it."""
        share, clock = self.share, time.perf_counter
        start = clock()
        share.show()
        share.move(share.first, self._edge)
        edge = clock()
        self._exchange.start()
        begun = clock()
        share.move(self._edge, share.last)
        inside = clock()
        self._exchange.wait()
        end = clock()
        for name, one, other in (
            ("shared units", start, edge),
            ("start", edge, begun),
            ("interior units", begun, inside),
        ):
            note(name, one, other)
        note("wait", inside, end)
        note("exchange", edge, end)


def curve(config: str, parts: list[int], repeat: int) -> list[dict[str, Any]]:
    """Samples of the seconds in which each of the ranks, all at once, computes 1 / parts of a model, and its weights.

    The last samples, of 0 parts, are of taking in a frame.
    """
    group, found = Group(), []
    share = Share(configuration(config), group)
    for count in parts:
        share.take(count)
        samples = timed(group, partial(share.move, share.first, share.last), repeat)
        found.append({"parts": count, "weights": share.weights, "samples": samples})
    frame = timed(group, share.show, repeat)
    return [*found, {"parts": 0, "weights": 0, "samples": frame}]


def ticks(config: str, repeat: int) -> dict[str, Any]:
    """Samples of the seconds of a tick of all ranks, as a whole, and when nobody tells anybody anything."""
    group = Group()
    model = Ticks(configuration(config), group)
    return {
        "tick": timed(group, model.tick, repeat),
        "compute": timed(group, model.share.compute, repeat),
    }


def alone(config: str, parts: int, repeat: int) -> list[float]:
    """Samples of the seconds in which one process computes its share of a model, for as many ranks, while no other computes."""
    share = Share(configuration(config), Group())
    share.take(parts)
    return timed(share.group, share.compute, repeat)


def timeline(config: str, count: int) -> list[list[Any]]:
    """So many ticks, on the clock of rank 0: rank, what it did, tick, from when to when."""
    group, ahead = Group(), Messages().offset()
    model = Ticks(configuration(config), group)
    model.tick()
    group.barrier()
    noted: list[list[tuple[str, float, float]]] = []
    for _ in range(count):
        noted.append([])
        model.tick(lambda name, start, end: noted[-1].append((name, start + ahead, end + ahead)))
    names = [name for name, *_ in noted[0]]
    times = [np.zeros((count, len(names), 2)) for _ in range(group.size)]
    times[group.rank][:] = [[span for _, *span in one] for one in noted]
    group.gather_all(times)
    return [
        [rank, name, tick, *of_rank[tick, at].tolist()]
        for rank, of_rank in enumerate(times)
        for tick in range(count)
        for at, name in enumerate(names)
    ]


def timed(group: Group, once: Callable[[], Any], repeat: int) -> list[float]:
    """Means of as many calls in a row as rank 0 finds long enough, those of the rank that took longest, `repeat` times."""
    once()
    start = time.perf_counter()
    once()
    turns = np.array([max(2, min(200, int(SECONDS / (time.perf_counter() - start))))])
    group.share(turns)
    samples = np.empty(repeat)
    for sample in range(repeat):
        group.barrier()
        start = time.perf_counter()
        for _ in range(turns[0]):
            once()
        samples[sample] = (time.perf_counter() - start) / turns[0]
    group.most(samples)
    found: list[float] = samples.tolist()
    return found
