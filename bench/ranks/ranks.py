"""Ranks on MPI: what messages take, what a tick of a PVM on ranks takes beside its compute, a timeline of all on one clock.

Each rank computes on one thread. Ticks are those of a model that learns and whose units the ranks share.
"""

import itertools
import statistics
from pathlib import Path
from typing import Any

from bench.harness.measure import Work, append, record
from bench.ranks.work import measured
from hybrid.machine import available
from hybrid.mpi.pingpong import SIZES
from hybrid.schedule.trace import Trace

RANKS = (2, 4)
LANGUAGE = {"batch": 1024, "classes": 100_000, "micro_batches": 4, "ticks": 8}
MODELS, QUICK = ("small", "mesh100m", "flat210m"), ("mesh1m",)
BAR = 1.1  # a tick of flat210m on 2 ranks, over the compute of one rank's half
TICKS = 8  # of a timeline, of each model


def run(arguments: Any) -> None:
    """Messages on 2 and 4 ranks, then ticks on 1, 2 and 4; with --timeline some of those once more."""
    models = QUICK if arguments.quick else MODELS
    several = RANKS[:1] if arguments.quick else RANKS
    for ranks in several:
        sizes = SIZES[1:2] if arguments.quick else SIZES
        found = measured("bench.ranks.work:messages", ranks, sizes=sizes, repeat=arguments.repeat)
        records = [kept(one, ranks) for one in found]
        print(message_table(records, available()), end="\n\n", flush=True)
        append(arguments.json, records)
    print(
        "| model | ranks | tick, ms | its compute, all at once | one rank's share alone | over that | |\n|" + "---|" * 7
    )
    for model, ranks in itertools.product(models, (1, *several)):
        records = ticks_of(model, ranks, arguments.repeat)
        print(tick_row(model, records), flush=True)
        append(arguments.json, records)
    options = LANGUAGE | ({"batch": 64, "classes": 1_000} if arguments.quick else {})
    for ranks in (1, *several):
        one = steps_of(options, ranks, arguments.repeat)
        print(f"| language | {ranks} | {1e3 * one['seconds']:.2f} | | | | |", flush=True)
        append(arguments.json, [one])
    if arguments.timeline:
        write_timeline(
            arguments.timeline,
            {model: measured("bench.ranks.work:timeline", 2, config=model, count=TICKS) for model in models},
        )
        print(f"\n{arguments.timeline}: {TICKS} ticks of {', '.join(models)} on 2 ranks, on the clock of rank 0")


def kept(found: dict[str, Any], ranks: int) -> dict[str, Any]:
    """One line of a .jsonl file, of samples that ranks took."""
    params = {"ranks": ranks, "bytes": found["bytes"]}
    facts = "bytes/s", _nothing, _nothing
    return record(Work(found["work"], "ours", params, found["bytes"], *facts, samples=found["samples"]))


def ticks_of(model: str, ranks: int, repeat: int) -> list[dict[str, Any]]:
    """Records of a tick, of its compute on all ranks at once, and of one rank's share while no other computes."""
    samples = measured("bench.ranks.work:ticks", ranks, config=model, repeat=repeat)
    samples["alone"] = measured("bench.ranks.work:alone", 1, config=model, parts=ranks, repeat=repeat)
    records = []
    for name in ("tick", "compute", "alone"):
        params = {"ranks": ranks, "model": model}
        work = Work(f"ranks.{name}", "ours", params, 1, "ticks/s", _nothing, _nothing, samples=samples[name])
        records.append(record(work))
    return records


def steps_of(options: dict[str, Any], ranks: int, repeat: int) -> dict[str, Any]:
    """A record of a step of a language model whose trunk the ranks share."""
    samples = measured("bench.ranks.work:steps", ranks, repeat=repeat, **options)
    params = {"ranks": ranks, "model": "language"}
    return record(Work("ranks.tick", "ours", params, 1, "ticks/s", _nothing, _nothing, samples=samples))


def _nothing() -> None:
    """What is measured on ranks runs and is checked there."""


def message_table(records: list[dict[str, Any]], cores: int) -> str:
    """As Markdown."""
    ranks = records[0]["params"]["ranks"]
    lines = [
        f"{ranks} ranks, {cores} cores"
        + ("; ranks that share a core wait for their turns, too:" if ranks > cores else ":"),
        "",
        "| what | bytes | us | GB/s | spread |",
        "|" + "---|" * 5,
    ]
    for one in records:
        lines.append(
            f"| {one['work'].removeprefix('ranks.')} | {one['params']['bytes']:,} | {1e6 * one['seconds']:.1f} "
            f"| {one['value'] / 1e9:.3g} | {one['spread']:.0%} |"
        )
    return "\n".join(lines)


def tick_row(model: str, records: list[dict[str, Any]]) -> str:
    """A tick beside its compute; of flat210m whether the bar is met."""
    tick, compute, alone = (statistics.median(1 / value for value in one["samples"]) for one in records)
    judged = ""
    if model == "flat210m":
        judged = f"bar {BAR:g} x the compute: {'met' if tick <= BAR * compute else 'missed'}; its units read no others'"
    figures = " | ".join(f"{1e3 * seconds:.2f}" for seconds in (tick, compute, alone))
    return f"| {model} | {records[0]['params']['ranks']} | {figures} | {tick / compute:.2f}, {tick / alone:.2f} | {judged} |"


def write_timeline(file: str | Path, found: dict[str, list[list[Any]]]) -> None:
    """Write what ranks did, (rank, what, tick, start, end) by model, for ui.perfetto.dev: two tracks a rank."""
    trace = Trace(keep=sum(map(len, found.values())))
    for model, intervals in found.items():
        for rank, name, tick, start, end in intervals:
            track = "under way" if name == "exchange" else "computes"
            trace.note(f"rank {rank}, {track}", f"{model}: {name}", tick, 0, start, end)
    trace.write_chrome(file)
