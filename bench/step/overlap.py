"""Dense and sparse stages at the same time, one core each, beside the same stages in turn on one core and on all cores."""

import itertools

import numpy as np

from bench.harness.measure import Work, append, measure, show
from bench.step.language import CONTEXT, OUTPUTS, RATE, WIDTH, ZipfFeed
from hybrid import SGD, Pipeline
from hybrid.engine import Engine
from hybrid.engine.embedding import Embedding
from hybrid.readout import TreeReadout
from hybrid.trunk.mlp import MLP

WAYS = {  # who: (overlap, None: it decides itself; threads, None: all that are given)
    "ours": (None, None),
    "overlapped": (True, 2),
    "serial-one-core": (False, 1),
    "serial-all-cores": (False, None),
}
DENSE, SPARSE = ("forward", "backward", "update"), ("feed", "gather", "readout", "scatter")
WARM = 24  # ticks in which the engine measures how to spend the cores
WIDEST = 16_384  # hidden width
TRIAL = 64  # hidden width of the trial by which dense and sparse stages are balanced


def run(arguments) -> None:
    """At delay 0 and 1, micro-batches long enough that a hand-off does not show."""
    classes, batch, micro, ticks = (1_000, 256, 2, 2) if arguments.quick else (100_000, 8_192, 8, 8)
    feed = ZipfFeed(classes, batch)
    hidden = balanced(feed, micro, threads=1)  # a core each
    for delay in (0, 1):
        _same_bytes(feed, hidden, micro, delay, arguments.threads)
        rivals = [_work(who, feed, hidden, micro, delay, ticks, arguments.threads) for who in WAYS]
        records = measure([work for work, _ in rivals], arguments.repeat)
        records = [record | facts(engine) for record, (_, engine) in zip(records, rivals, strict=True)]
        show(records)
        _judge({record["who"]: record for record in records})
        append(arguments.json, records)


def make_engine(feed: ZipfFeed, hidden, micro, delay, overlap, threads, device="cpu") -> Engine:
    """The language model under a tree, with the cores spent in one of the ways."""
    return Engine(
        Embedding(feed.rows, WIDTH, per_example=CONTEXT, spread=0.1, optimiser=SGD(RATE)),
        MLP([CONTEXT * WIDTH, hidden, OUTPUTS], optimiser=SGD(RATE)),
        TreeReadout(feed.counts, OUTPUTS, batch=feed.batch, optimiser=SGD(RATE)),
        schedule="constant",
        threads=threads,
        device=device,
        pipeline=Pipeline(micro_batches=micro, delay=delay, overlap=overlap),
    )


def balanced(feed: ZipfFeed, micro: int, threads: int, device: str = "cpu") -> int:
    """The hidden width at which dense stages take about as long as sparse ones."""
    hidden = TRIAL
    for _ in range(3):
        dense, sparse = kinds(_trial(feed, hidden, micro, threads, device))
        hidden = min(max(8, round(hidden * sparse / dense / 4) * 4), WIDEST)
    return hidden


def _trial(feed: ZipfFeed, hidden: int, micro: int, threads: int, device: str) -> Engine:
    engine = make_engine(feed, hidden, micro, 0, False, threads, device)
    ticks = engine.run(feed)
    for _ in range(4):
        next(ticks)
    engine.trace.clear()
    for _ in range(4):
        next(ticks)
    return engine


def kinds(engine: Engine) -> tuple[float, float]:
    """Seconds of dense and of sparse stages since the trace began; copies are neither."""
    stages = engine.trace.summary()["stages"]
    return tuple(sum(stages[name] for name in names) for names in (DENSE, SPARSE))


def _same_bytes(feed, hidden, micro, delay, threads) -> None:
    """However the cores are spent, the parameters end as the same bytes; else nothing is timed."""
    found = {}
    for who, (overlap, most) in WAYS.items():
        engine = make_engine(feed, hidden, micro, delay, overlap, most or threads)
        for _ in itertools.islice(engine.run(feed), 3):
            pass
        found[who] = b"".join(array.tobytes() for array in engine.parameters().values())
    if len(set(found.values())) != 1:
        raise AssertionError(f"the ways to spend the cores end with different parameters: {list(found)}")


def _work(who, feed, hidden, micro, delay, ticks, threads) -> tuple[Work, Engine]:
    overlap, most = WAYS[who]
    engine = make_engine(feed, hidden, micro, delay, overlap, most or threads)
    running = engine.run(feed)
    losses: list[float] = []

    def step():
        losses.extend(next(running).loss for _ in range(ticks))

    def check():
        if not np.isfinite(losses).all():
            raise AssertionError(f"losses {losses}")
        for _ in range(max(WARM - ticks, 0)):
            next(running)
        engine.trace.clear()

    params = {"classes": feed.classes, "batch": feed.batch, "micro_batches": micro, "hidden": hidden, "delay": delay}
    work = ("overlap.tick", who, params, ticks * feed.batch, "examples/s", step, check)
    return Work(*work, threads=most or threads), engine


def facts(engine: Engine) -> dict:
    """What the trace says of the measured ticks, for the record; of the last that is over every stage, in seconds."""
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
    """The bars, with what was measured."""
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
