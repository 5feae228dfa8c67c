"""Dense and sparse stages overlapped, one core each, against the same stages in turn on one core and on all cores."""

import itertools
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from bench.harness.measure import Work, append, measure, show
from bench.step.language import CONTEXT, OUTPUTS, RATE, WIDTH, ZipfFeed
from hybrid import SGD, Pipeline
from hybrid.engine import Engine
from hybrid.engine.embedding import Embedding
from hybrid.readout import TreeReadout
from hybrid.trunk.mlp import MLP

WAYS = {  # who: (overlap, None: automatic; threads, None: all)
    "ours": (None, None),
    "overlapped": (True, 2),
    "serial-one-core": (False, 1),
    "serial-all-cores": (False, None),
}
DENSE, SPARSE = ("forward", "backward", "update"), ("feed", "gather", "readout", "scatter")
WARM = 24  # ticks in which the engine measures how to use the cores
WIDEST = 16_384  # maximum hidden width
TRIAL = 64  # hidden width of the trial that balances dense and sparse stages


def run(arguments) -> None:
    """Measures all ways, with micro-batches long enough to hide a hand-off."""
    classes, batch, micro, ticks = (1_000, 256, 2, 2) if arguments.quick else (100_000, 8_192, 8, 8)
    feed = ZipfFeed(classes, batch)
    hidden = balanced(feed, micro, threads=1)  # one core each
    ways = {who: (overlap, most or arguments.threads) for who, (overlap, most) in WAYS.items()}
    case = Case(feed, hidden, micro, ticks)
    case.check_bytes(ways)
    records = case.records(ways, arguments.repeat, max(WARM - ticks, 0))
    show(records)
    _judge({record["who"]: record for record in records})
    append(arguments.json, records)


def make_engine(feed: ZipfFeed, hidden, micro, overlap, threads, device="cpu") -> Engine:
    """Builds the language model under a tree, with the cores used in one of the ways."""
    return Engine(
        Embedding(feed.rows, WIDTH, per_example=CONTEXT, spread=0.1, optimiser=SGD(RATE)),
        MLP([CONTEXT * WIDTH, hidden, OUTPUTS], optimiser=SGD(RATE)),
        TreeReadout(feed.counts, OUTPUTS, batch=feed.batch, optimiser=SGD(RATE)),
        schedule="constant",
        threads=threads,
        device=device,
        pipeline=Pipeline(micro_batches=micro, overlap=overlap),
    )


def balanced(feed: ZipfFeed, micro: int, threads: int, device: str = "cpu") -> int:
    """Returns the hidden width at which dense stages take about as long as sparse ones."""
    hidden = TRIAL
    for _ in range(3):
        dense, sparse = kinds(_trial(feed, hidden, micro, threads, device))
        hidden = min(max(8, round(hidden * sparse / dense / 4) * 4), WIDEST)
    return hidden


def _trial(feed: ZipfFeed, hidden: int, micro: int, threads: int, device: str) -> Engine:
    engine = make_engine(feed, hidden, micro, False, threads, device)
    ticks = engine.run(feed)
    for _ in range(4):
        next(ticks)
    engine.trace.clear()
    for _ in range(4):
        next(ticks)
    return engine


def kinds(engine: Engine) -> tuple[float, float]:
    """Returns the seconds of dense and of sparse stages since the trace began; copies are neither."""
    stages = engine.trace.summary()["stages"]
    return tuple(sum(stages[name] for name in names) for names in (DENSE, SPARSE))


Ways = Mapping[str, tuple[bool | None, int]]  # who -> overlap, threads


class Case(NamedTuple):
    """Ticks of one size, so many per turn; device: of the dense stages."""

    feed: ZipfFeed
    hidden: int
    micro: int
    ticks: int
    device: str = "cpu"

    def engine(self, overlap: bool | None, threads: int) -> Engine:
        """Builds an engine that uses the cores in one of the ways."""
        return make_engine(self.feed, self.hidden, self.micro, overlap, threads, self.device)

    def check_bytes(self, ways: Ways) -> None:
        """Raises unless all ways give byte-identical parameters; runs before any timing."""
        found = set()
        for way in ways.values():
            engine = self.engine(*way)
            for _ in itertools.islice(engine.run(self.feed), 3):
                pass
            found.add(b"".join(array.tobytes() for array in engine.parameters().values()))
        if len(found) != 1:
            raise AssertionError(f"the ways to spend the cores end with different parameters: {list(ways)}")

    def records(self, ways: Ways, repeat: int, warm: int, name: str = "cpu") -> list[dict]:
        """Returns the record of each way, with its timeline figures; warm: uncounted ticks; name: of the device."""
        engines = [self.engine(*way) for way in ways.values()]
        works = [self._work(who, engine, warm) for who, engine in zip(ways, engines, strict=True)]
        for work, (_, threads) in zip(works, ways.values(), strict=True):
            work.threads, work.device = threads, name
        return [record | facts(engine) for record, engine in zip(measure(works, repeat), engines, strict=True)]

    def _work(self, who: str, engine: Engine, warm: int) -> Work:
        running = engine.run(self.feed)
        losses: list[float] = []

        def step():
            losses.extend(next(running).loss for _ in range(self.ticks))

        def check():
            if not np.isfinite(losses).all():
                raise AssertionError(f"losses {losses}")
            for _ in range(warm):
                next(running)
            engine.trace.clear()

        params = {"classes": self.feed.classes, "batch": self.feed.batch, "micro_batches": self.micro}
        params |= {"hidden": self.hidden}
        return Work("overlap.tick", who, params, self.ticks * self.feed.batch, "examples/s", step, check)


def facts(engine: Engine) -> dict:
    """Returns the trace figures of the measured ticks; of the last complete tick every stage, in seconds."""
    summary, recent = engine.trace.summary(), list(engine.trace.recent)
    over = max((one.tick for one in recent if one.stage == SPARSE[-1]), default=0)
    last = [one for one in recent if one.tick == over]
    began = min((one.start for one in last), default=0.0)
    dense, sparse = kinds(engine)
    kept = {name: summary[name] for name in ("stages", "overlap", "efficiency")}
    timeline = [
        {"queue": one.queue, "stage": one.stage, "micro": one.micro}
        | {"start": round(one.start - began, 7), "end": round(one.end - began, 7)}
        for one in last
    ]
    pace = engine.cores.line() if engine.cores else ""
    return kept | {"balance": dense / sparse, "pace": pace, "timeline": timeline}


def _judge(records: dict[str, dict]) -> None:
    """Prints the bars with the measured values."""
    ours, together = records["ours"], records["overlapped"]
    one, everyone = records["serial-one-core"], records["serial-all-cores"]
    best = min(together["seconds"], everyone["seconds"])
    apart = max(one["balance"], 1 / one["balance"])
    for name, value, least, bar in (
        ("dense and sparse on one core each, longer over shorter", apart, False, 1.3),
        ("in turn on one core, over overlapped", one["seconds"] / together["seconds"], True, 1.5),
        ("overlapped: wall over the busiest queue", 1 / together["efficiency"], False, 1.25),
        ("ours, over the better of the two ways", ours["seconds"] / best, False, 1.03),
    ):
        met = value >= bar if least else value <= bar
        print(f"  {name:<56} {value:6.2f}  at {'least' if least else 'most'} {bar}: {'met' if met else 'missed'}")
    print(f"  ours: {ours['pace']}")


# `bench gpu`: trunk on the GPU, rows and tree on the CPU, overlapped against every stage in turn.

GPU, GPU_QUICK, GPU_WARM = (
    (1_000_000, 8192, 8, 20),
    (500, 64, 2, 2),
    6,
)  # classes, batch, micro-batches, ticks; warm: ticks
COPIES = ("x in", "hidden out", "grad in", "x_grad out")


class Hybrid:
    """The contest on a Machine of bench/gpu/machine.py."""

    def __init__(self, machine: Any, sizes: tuple[int, int, int, int], threads: int):
        self.machine, self.threads = machine, threads
        classes, batch, micro, ticks = sizes
        feed = ZipfFeed(classes, batch)
        self.case = Case(feed, balanced(feed, micro, threads, "cuda:0"), micro, ticks, "cuda:0")

    def records(self, repeat: int) -> list[dict]:
        """Returns ours first, then the same stages in turn."""
        ways = {"ours": (None, self.threads), "in turn": (False, self.threads)}
        found = self.case.records(ways, repeat, GPU_WARM, self.machine.name)
        for one in found:
            one["env"] |= self.machine.facts
            one["copies"] = sum(one["stages"].get(name, 0.0) for name in COPIES) / sum(one["stages"].values())
        return found


def on_gpu(machine: Any, quick: bool, threads: int) -> Iterator[Callable[[], Hybrid]]:
    """Yields the factory of the contest."""
    yield partial(Hybrid, machine, GPU_QUICK if quick else GPU, threads)
