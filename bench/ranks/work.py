"""What the ranks of this run do for `bench ranks`: messages, ticks of a Predictive Vision Model, steps of a language model.

All ranks call each function, and rank 0 knows the figures.
"""

import dataclasses
import importlib
import itertools
import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

from bench.step.language import ZipfFeed, make_engine
from hybrid import contract
from hybrid.mpi.engine import ranked
from hybrid.mpi.group import Group
from hybrid.mpi.pingpong import Messages
from hybrid.mpi.pvm import Ranks
from hybrid.mpi.world import command, world
from hybrid.pvm import presets
from hybrid.pvm.config import Config
from hybrid.pvm.model import PVM


def measured(what: str, ranks: int, **options: Any) -> Any:
    """What rank 0 returns of `what(**options)`, "module:function", which all of so many ranks call. JSON-able, both of them.

    Each rank computes on one thread. Raises RuntimeError where a rank fails; it has said why.
    """
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder) / "found.json"
        code = subprocess.run(command(ranks, "bench.ranks.work", what, json.dumps(options), str(out))).returncode
        if code:
            raise RuntimeError(f"{what}: {ranks} ranks ended with code {code}")
        return json.loads(out.read_text())


def main(what: str, options: str, out: str) -> None:
    """Do it as one rank."""
    import numba

    numba.set_num_threads(1)
    module, _, name = what.partition(":")
    found = getattr(importlib.import_module(module), name)(**json.loads(options))
    if world().rank == 0:
        Path(out).write_text(json.dumps(found))


if __name__ == "__main__":
    main(*sys.argv[1:])


RATE, SECONDS = 0.001, 0.2  # seconds of a sample, about
MESHES = {"mesh1m": 6, "mesh100m": 47}  # units a side of a flat layer whose units read their neighbours


def messages(sizes: list[int], repeat: int) -> list[dict[str, Any]]:
    """Messages one way of some sizes, sums, all to all: work, bytes, samples in seconds."""
    told = Messages()
    found = [{"work": "ranks.message", "bytes": size, "samples": told.pingpong(1, size, repeat)} for size in sizes]
    found.append({"work": "ranks.allreduce", "bytes": 4 << 20, "samples": told.allreduce(4 << 20, repeat)})
    found.append({"work": "ranks.alltoall", "bytes": 1 << 18, "samples": told.alltoall(1 << 18, repeat)})
    return found


def configuration(name: str) -> Config:
    """One of the package's, or a mesh; it learns from the first tick on."""
    if name in MESHES:
        side = MESHES[name]
        flat = presets.load("flat210m")[0]
        config = dataclasses.replace(flat, name=name, grids=((side, side),), lateral_radius=2.0, self_context=True)
    else:
        config = dataclasses.replace(presets.load(name)[0], readout=None)
    return dataclasses.replace(config, schedule=((0, None, RATE, max(event[3] or 0 for event in config.schedule)),))


class Share:
    """A range of units that this rank computes and tells nobody of: from `first` to before `last`, which have `weights`."""

    def __init__(self, config: Config, group: Group):
        self.group, self.model = group, PVM(config, device="cpu", threads=1)
        pipeline = self.model.pipeline
        layout, state = pipeline.layout, pipeline.state
        self._starts = np.append(layout.w_at[layout.layer_at[:-1]], self.model.weights.size)
        units = len(self._starts) - 1
        miss, speed = np.zeros(units, np.float32), np.zeros((2, units), np.float32)
        speed[:] = np.stack(config.rates(0))[:, pipeline.wiring.layer]
        learns = np.ones(units, np.uint8)
        self._image = np.random.default_rng(0).integers(0, 256, (1, pipeline.frame_size), np.uint8)
        self._frame = np.empty_like(self._image)
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
        np.copyto(self._frame, self._image)
        self._kernels.show(self._past.world, self._frame, 1 / 255)

    def move(self, first: int, last: int) -> None:
        """Some units learn and predict."""
        if last > first:
            given = self._past, self._learning, self._gathering, self._activation
            self._kernels.tick(self._now, self._plan, *given, first, last)

    def compute(self) -> None:
        """A tick of the units."""
        self.show()
        self.move(self.first, self.last)


def running(config: Config, group: Group) -> tuple[PVM, Iterator[Any]]:
    """A model whose units the ranks share, and its ticks."""
    model = PVM(config, device="cpu", threads=1, ranks=Ranks(group))
    frame = np.random.default_rng(0).integers(0, 256, model.wiring.frame, np.uint8)
    return model, model.run(itertools.repeat(frame), every=1 << 30)


def ticks(config: str, repeat: int) -> dict[str, list[float]]:
    """Samples of the seconds of a tick of all ranks, and of as many weights a rank when nobody tells anybody anything."""
    group = Group()
    share = Share(configuration(config), group)
    share.take(group.size)
    compute = timed(group, share.compute, repeat)
    del share
    _, all_ticks = running(configuration(config), group)
    samples = timed(group, lambda: next(all_ticks), repeat)
    return {"tick": samples, "compute": compute}


def alone(config: str, parts: int, repeat: int) -> list[float]:
    """Samples of the seconds in which one process computes its share of a model, for as many ranks, while no other computes."""
    share = Share(configuration(config), Group())
    share.take(parts)
    return timed(share.group, share.compute, repeat)


def timeline(config: str, count: int) -> list[list[Any]]:
    """The last of some ticks, on the clock of rank 0: rank, stage, tick, from when to when; what is under way is "exchange"."""
    group, ahead = Group(), Messages().offset()
    model, all_ticks = running(configuration(config), group)
    for _ in itertools.islice(all_ticks, 2 * count):
        pass
    last = max(one.tick for one in model.trace.recent if one.stage == "halo in")  # more of the next may be under way
    seen = [one for one in model.trace.recent if last - count < one.tick <= last]
    names = [one.stage for one in seen if one.tick == last]
    times = [np.zeros((count, len(names), 2)) for _ in range(group.size)]
    for one in seen:
        times[group.rank][one.tick - last + count - 1, names.index(one.stage)] = one.start + ahead, one.end + ahead
    group.gather_all(times)
    found = []
    for rank, tick in itertools.product(range(group.size), range(count)):
        spans = dict(zip(names, times[rank][tick].tolist(), strict=True))
        spans["exchange"] = [spans["send"][0], spans["arrive"][1]]
        found += [[rank, name, tick, *span] for name, span in spans.items()]
    return found


def steps(batch: int, classes: int, micro_batches: int, ticks: int, repeat: int) -> list[float]:
    """Samples of the seconds of a step of all ranks, which share the trunk; each the mean of some ticks."""
    group, samples, feed = Group(), np.empty(repeat), ZipfFeed(classes, batch)
    running = make_engine(feed, "tree", 1, micro_batches=micro_batches, route=ranked(group)).run(feed)
    for sample in range(-1, repeat):  # the first warms up
        group.barrier()
        start = time.perf_counter()
        for _ in itertools.islice(running, ticks):
            pass
        if sample >= 0:
            samples[sample] = (time.perf_counter() - start) / ticks
    group.most(samples)
    found: list[float] = samples.tolist()
    return found


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
