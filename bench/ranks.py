"""Ranks on MPI: what messages take, what a tick of a PVM on ranks takes beside its compute, a timeline of all on one clock.

Each rank computes on one thread. Ticks are those of a model that learns and whose units the ranks share.
"""

import itertools
import statistics
from pathlib import Path
from typing import Any

from bench.measure import Work, append, record
from bench.ranks_messages import HALOS
from bench.ranks_run import measured
from hybrid.engine.trace import Trace
from hybrid.processors import available
from hybrid.ranks.pingpong import SIZES

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
        found = messages(ranks, arguments.quick, arguments.repeat)
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
            {model: measured("bench.ranks_pvm:timeline", 2, config=model, count=TICKS) for model in models},
        )
        print(f"\n{arguments.timeline}: {TICKS} ticks of {', '.join(models)} on 2 ranks, on the clock of rank 0")


def messages(ranks: int, quick: bool, repeat: int) -> list[dict[str, Any]]:
    """What messages take between so many ranks, see bench/ranks_messages.py."""
    sizes, around = (SIZES[1:2], HALOS[1:3]) if quick else (SIZES, HALOS)
    found: list[dict[str, Any]] = measured(
        "bench.ranks_messages:all_of_them", ranks, sizes=sizes, around=around, repeat=repeat
    )
    return found


def kept(found: dict[str, Any], ranks: int) -> dict[str, Any]:
    """One line of a .jsonl file, of samples that ranks took."""
    params = {"ranks": ranks, "bytes": found["bytes"]}
    more = {name: value for name, value in found.items() if name not in ("work", "bytes", "samples")}
    work = Work(found["work"], "ours", params, found["bytes"], "bytes/s", _nothing, _nothing, more=more)
    work.samples = found["samples"]
    return record(work)


def ticks_of(model: str, ranks: int, repeat: int) -> list[dict[str, Any]]:
    """Records of a tick, of its compute on all ranks at once, and of one rank's share while no other computes."""
    samples = measured("bench.ranks_pvm:ticks", ranks, config=model, repeat=repeat)
    samples["alone"] = measured("bench.ranks_pvm:alone", 1, config=model, parts=ranks, repeat=repeat)
    records = []
    for name in ("tick", "compute", "alone"):
        params = {"ranks": ranks, "model": model}
        work = Work(f"ranks.{name}", "ours", params, 1, "ticks/s", _nothing, _nothing, samples=samples[name])
        records.append(record(work))
    return records


def steps_of(options: dict[str, Any], ranks: int, repeat: int) -> dict[str, Any]:
    """A record of a step of a language model whose trunk the ranks share."""
    samples = measured("bench.ranks_language:steps", ranks, repeat=repeat, **options)
    params = {"ranks": ranks, "model": "language"}
    return record(Work("ranks.tick", "ours", params, 1, "ticks/s", _nothing, _nothing, samples=samples))


def _nothing() -> None:
    """What is measured on ranks runs and is checked there."""


def message_table(records: list[dict[str, Any]], cores: int) -> str:
    """As Markdown; `start` and `hidden` are of halos alone."""
    ranks = records[0]["params"]["ranks"]
    lines = [
        f"{ranks} ranks, {cores} cores"
        + ("; ranks that share a core wait for their turns, too:" if ranks > cores else ":"),
        "",
        "| what | bytes | us | GB/s | spread | begun after, us | hidden beside compute |",
        "|" + "---|" * 7,
    ]
    for one in records:
        begun = f"{1e6 * one['start']:.1f} | {one['hidden']:.0%}" if "start" in one else " | "
        lines.append(
            f"| {one['work'].removeprefix('ranks.')} | {one['params']['bytes']:,} | {1e6 * one['seconds']:.1f} "
            f"| {one['value'] / 1e9:.3g} | {one['spread']:.0%} | {begun} |"
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
