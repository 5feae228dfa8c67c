"""Ranks on MPI: the time of messages, a PVM's tick on ranks against its compute, steps of a language model.

Each rank computes on one thread. Ticks are those of a training model whose units are partitioned among the ranks.
"""

import dataclasses
import functools
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

from bench.harness.measure import Work, append, record
from bench.step.language import ZipfFeed, make_engine
from hybrid import contract
from hybrid.mpi.engine import ranked
from hybrid.mpi.group import Exchange, Group
from hybrid.mpi.pvm import Ranks
from hybrid.mpi.world import command, world
from hybrid.pvm import presets
from hybrid.pvm.config import Config
from hybrid.pvm.model import PVM

RANKS = (2, 4)
LANGUAGE = {"batch": 1024, "classes": 100_000, "micro_batches": 4, "ticks": 8}
MODELS, QUICK = ("small", "mesh100m", "flat210m"), ("mesh1m",)
SIZES = tuple(8 << power for power in (0, 4, 8, 11, 14, 17, 19))  # bytes of a message: 8 to 4 Mi


def run(arguments: Any) -> None:
    """Measures messages between 2 ranks, then ticks on 1, 2 and 4."""
    models = QUICK if arguments.quick else MODELS
    several = RANKS[:1] if arguments.quick else RANKS
    sizes = SIZES[1:2] if arguments.quick else SIZES
    found = measured("messages", 2, sizes=sizes, repeat=arguments.repeat)
    records = [kept(work, {"ranks": 2, "bytes": size}, samples, size, "bytes/s") for work, size, samples in found]
    print(message_table(records), end="\n\n", flush=True)
    append(arguments.json, records)
    print("| model | ranks | tick, ms | its compute, all at once, ms | |\n|" + "---|" * 5)
    for model, ranks in itertools.product(models, (1, *several)):
        samples = measured("ticks", ranks, config=model, repeat=arguments.repeat)
        records = [kept(name, {"ranks": ranks, "model": model}, samples[name]) for name in ("tick", "compute")]
        tick, compute = (one["seconds"] for one in records)
        print(f"| {model} | {ranks} | {1e3 * tick:.2f} | {1e3 * compute:.2f} | {tick / compute:.2f} |", flush=True)
        append(arguments.json, records)
    options = LANGUAGE | ({"batch": 64, "classes": 1_000} if arguments.quick else {})
    for ranks in (1, *several):
        samples = measured("steps", ranks, repeat=arguments.repeat, **options)["tick"]
        one = kept("tick", {"ranks": ranks, "model": "language"}, samples)
        print(f"| language | {ranks} | {1e3 * one['seconds']:.2f} | | |", flush=True)
        append(arguments.json, [one])


def kept(work: str, params: dict[str, Any], samples: list[float], amount: float = 1, unit: str = "ticks/s") -> dict:
    """Returns a record of samples that ranks took; measurements on ranks are checked there."""
    return record(Work(f"ranks.{work}", "ours", params, amount, unit, _nothing, _nothing, samples=samples))


def _nothing() -> None:
    pass


def message_table(records: list[dict[str, Any]]) -> str:
    """Returns the messages as a Markdown table."""
    lines = ["| what | bytes | us | GB/s | spread |", "|" + "---|" * 5]
    for one in records:
        lines.append(
            f"| {one['work'].removeprefix('ranks.')} | {one['params']['bytes']:,} | {1e6 * one['seconds']:.1f} "
            f"| {one['value'] / 1e9:.3g} | {one['spread']:.0%} |"
        )
    return "\n".join(lines)


# The ranks' part: all call each function, and rank 0 gets the figures.


def measured(what: str, ranks: int, start: Any = None, **options: Any) -> Any:
    """Returns rank 0's result of a function of this file that `ranks` ranks call with these options; both as JSON.

    start  runs module and arguments on the ranks; returns the exit code. None: mpiexec does, on this machine

    Each rank computes on one thread. Raises RuntimeError if a rank fails, which has printed the reason.
    """
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder) / "found.json"
        words = "bench.step.ranks", what, json.dumps(options), str(out)
        code = start(ranks, *words) if start else subprocess.run(command(ranks, *words)).returncode
        if code:
            raise RuntimeError(f"{what}: {ranks} ranks ended with code {code}")
        return json.loads(out.read_text())


def main(what: str, options: str, out: str) -> None:
    """Runs the function as one rank."""
    import numba

    numba.set_num_threads(1)
    found = globals()[what](**json.loads(options))
    if world().rank == 0:
        Path(out).write_text(json.dumps(found))


RATE, SECONDS = 0.001, 0.2  # learning rate; approximate seconds per sample
MESHES = {"mesh1m": 6, "mesh100m": 47}  # units per side of a flat layer whose units read their neighbours


def messages(sizes: list[int], repeat: int) -> list[tuple[str, int, list[float]]]:
    """Measures messages of some bytes from one rank to another, and a maximum of one number; name, bytes, samples in seconds.

    They are sent and waited for as those of a model.
    """
    group, found = Group(), []
    for size in sizes:
        array = np.zeros(size, np.uint8)
        ends: Any = ({1: array}, {}), ({}, {0: array})  # of the way there: what ranks 0 and 1 send and receive
        there, back = group.exchange(*ends[group.rank]), group.exchange(*ends[group.rank][::-1])
        found.append(
            ("message", size, [one / 2 for one in timed(group, functools.partial(_both, there, back), repeat)])
        )
    found.append(("most", 8, timed(group, lambda: group.most(np.zeros(1, np.int64)), repeat)))
    return found


def _both(there: Exchange, back: Exchange) -> None:
    for exchange in (there, back):
        exchange.start()
        exchange.wait()


def configuration(name: str) -> Config:
    """Returns a configuration of the package, or a mesh; it learns from the first tick on."""
    if name in MESHES:
        side = MESHES[name]
        flat = presets.load("flat210m")[0]
        config = dataclasses.replace(flat, name=name, grids=((side, side),), lateral_radius=2.0, self_context=True)
    else:
        config = dataclasses.replace(presets.load(name)[0], readout=None)
    return dataclasses.replace(config, schedule=((0, None, RATE, max(event[3] or 0 for event in config.schedule)),))


class Share:
    """The units of an equal part of the model's cost, at least one, that this rank computes without any exchange."""

    def __init__(self, config: Config, group: Group):
        self.model = PVM(config, device="cpu", threads=1)
        pipeline = self.model.pipeline
        layout, state = pipeline.layout, pipeline.state
        starts = np.append(layout.w_at[layout.layer_at[:-1]], self.model.weights.size)
        units = len(starts) - 1
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

        rank, all_of_it = group.rank, int(starts[-1])
        ends = np.searchsorted(starts, [all_of_it * one // group.size for one in (rank, rank + 1)])
        self.first, self.last = int(ends[0]), max(int(ends[1]), int(ends[0]) + 1)

    def compute(self) -> None:
        """Computes a tick of the units, which reads a whole frame."""
        np.copyto(self._frame, self._image)
        self._kernels.show(self._past.world, self._frame, 1 / 255)
        given = self._past, self._learning, self._gathering, self._activation
        self._kernels.tick(self._now, self._plan, *given, self.first, self.last)


class Noted(Exchange):
    """An exchange whose starts are noted."""

    notes: Callable[[], None] | None = None

    def start(self) -> None:
        """As of an exchange."""
        if self.notes:
            self.notes()
        super().start()


class Counted(Group):
    """A group that notes its messages: (kind, bytes that this rank sends)."""

    def __init__(self) -> None:
        super().__init__()
        self.messages: list[tuple[str, int]] = []

    def most(self, numbers: np.ndarray) -> None:
        """As of a group."""
        self.messages.append(("most", numbers.nbytes))
        super().most(numbers)

    def share(self, array: np.ndarray, rank: int = 0) -> None:
        """As of a group."""
        self.messages.append(("share", array.nbytes if rank == self.rank else 0))
        super().share(array, rank)

    def join(self, whole: np.ndarray, counts: Any) -> None:
        """As of a group."""
        self.messages.append(("join", int(counts[self.rank]) * whole.itemsize))
        super().join(whole, counts)

    def exchange(self, send: Any, receive: Any) -> Any:
        """As of a group."""
        made = Noted(super().exchange(send, receive)._requests)
        if send or receive:
            size = sum(array.nbytes for array in send.values())
            made.notes = functools.partial(self.messages.append, ("exchange", size))
        return made

    def during(self, work: Callable[[], object]) -> list[tuple[str, int]]:
        """Returns the messages of some work."""
        self.messages.clear()
        work()
        return list(self.messages)


def running(config: Config, group: Group) -> tuple[PVM, Iterator[Any]]:
    """Returns a model whose units are partitioned among the ranks, and its ticks."""
    model = PVM(config, device="cpu", threads=1, ranks=Ranks(group))
    frame = np.random.default_rng(0).integers(0, 256, model.wiring.frame, np.uint8)
    return model, model.run(itertools.repeat(frame), every=1 << 30)


def ticks(config: str, repeat: int) -> dict[str, Any]:
    """Returns samples of the seconds of a tick of all ranks, and of the same weights per rank alone; its messages."""
    group = Counted()
    compute = timed(group, Share(configuration(config), group).compute, repeat)
    _, all_ticks = running(configuration(config), group)
    samples = timed(group, lambda: next(all_ticks), repeat)
    return {"tick": samples, "compute": compute, "messages": group.during(lambda: next(all_ticks))}


def steps(batch: int, classes: int, micro_batches: int, ticks: int, repeat: int) -> dict[str, Any]:
    """Returns samples of the seconds of a step of all ranks, with the trunk partitioned; each the mean of some ticks.

    Its messages too, and the seconds of the stages of the trunk on this rank.
    """
    group, samples, feed = Counted(), np.empty(repeat), ZipfFeed(classes, batch)
    engine = make_engine(feed, "tree", 1, micro_batches=micro_batches, route=ranked(group))
    running = engine.run(feed)
    for sample in range(-1, repeat):  # the first warms up
        group.greatest(0)  # waits for all ranks
        start = time.perf_counter()
        for _ in itertools.islice(running, ticks):
            pass
        if sample >= 0:
            samples[sample] = (time.perf_counter() - start) / ticks
    group.most(samples)
    stages = engine.trace.summary()["stages"]
    trunk = sum(seconds for name, seconds in stages.items() if name.startswith(("forward", "backward")))
    found = {"tick": samples.tolist(), "trunk": trunk / engine.trace.ticks}
    return found | {"messages": group.during(lambda: next(running))}


def timed(group: Group, once: Callable[[], Any], repeat: int) -> list[float]:
    """Returns `repeat` means over consecutive calls, of the slowest rank; rank 0 chooses the number of calls."""
    once()
    start = time.perf_counter()
    once()
    turns = np.array([max(2, min(200, int(SECONDS / (time.perf_counter() - start))))])
    group.share(turns)
    samples = np.empty(repeat)
    for sample in range(repeat):
        group.greatest(0)  # waits for all ranks
        start = time.perf_counter()
        for _ in range(turns[0]):
            once()
        samples[sample] = (time.perf_counter() - start) / turns[0]
    group.most(samples)
    return samples.tolist()


if __name__ == "__main__":
    main(*sys.argv[1:])
