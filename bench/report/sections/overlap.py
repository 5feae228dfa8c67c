"""Overlap: dense and sparse stages, serial and overlapped, a tick as a timeline, and the speed on a busy machine."""

import statistics
from collections.abc import Sequence
from typing import Any

from bench.report.section import Cell, Figure, Record, Section, Step, Table, ends

PLACE = 80
STEPS = [
    Step("overlap", ("overlap",), 70, 3, quick=("overlap",)),
    Step("busy", ("busy", "--only", "tree", "--only", "language overlapped"), 20, 6),
]
WAYS = {
    "serial-one-core": "serial on one core",
    "serial-all-cores": "serial on all cores",
    "in turn": "serial",
    "overlapped": "overlapped, two threads",
    "ours": "as the engine decides",
}
SIZES = ("classes", "batch", "micro_batches", "hidden")
PACE = [
    "way",
    "where",
    "threads",
    "examples/s",
    "lowest of 95 %",
    "highest of 95 %",
    "share hidden",
    "wall over busiest queue",
]
LINE = ["way", "queue", "stage", "micro-batch", "begins, ms", "ends, ms"]
BUSY = ["work", "other processes", "steps/s", "share of the quiet machine's", "slowest 1 %, ms"]


def section(records: Sequence[Record]) -> Section:
    """Shows rates, one tick, a busy machine."""
    ticks = [one for one in records if one["work"] == "overlap.tick"]
    busy = [one for one in records if one["work"].startswith("busy.") and one["who"] == "ours"]
    answer: list[str] = []
    figures: list[Figure] = []
    tables: list[Table] = []
    gaps = []
    if ticks:
        answer += [_sizes(ticks[0]), _summary(ticks)]
        figures.append(_paces(ticks))
        tables.append(_pace_table(ticks))
    else:
        gaps.append("Serial and overlapped stages have not been measured.")
    if shown := [one for one in ticks if one.get("timeline")]:
        figures.append(_timeline(shown))
        tables.append(_timeline_table(shown))
    if busy:
        rows = _busy_rows(busy)
        worst = min(rows, key=lambda row: row["share"])
        answer.append(
            f"On a busy machine, beside {worst['load']} counting processes, {worst['work']} keeps {worst['share']:.0%} of its "
            "speed."
        )
        cells: list[list[Cell]] = [list(row.values()) for row in rows]
        caption = "Our kernels beside processes that only count"
        tables.append(Table("overlap-busy", caption, BUSY, cells, "python -m bench busy"))
    else:
        gaps.append("A busy machine has not been measured.")
    return Section(
        "Overlap of dense and sparse stages", answer, figures, tables, gaps, "".join(answer[1:2] if ticks else [])
    )


def _sizes(record: Record) -> str:
    sizes = ", ".join(f"{name.replace('_', '-')} {record['params'][name]:,}" for name in SIZES)
    return (
        f"A language model whose dense stages (trunk) take about as long as its sparse ones (rows, tree): {sizes}. All ways "
        "produce the same parameters to the byte, which is checked first. Share hidden: of the time that overlap can hide. "
        "Last column: time of a tick over that of its busiest queue."
    )


def _summary(ticks: Sequence[Record]) -> str:
    """Returns the gain of overlapping."""
    by = {one["who"]: one for one in ticks}
    ours = by["overlapped"]
    gains = [
        f"{ours['value'] / by[who]['value']:.2f} times as fast as {WAYS[who]}"
        for who in ("serial-one-core", "serial-all-cores", "in turn")
        if who in by
    ]
    hidden = f"{ours['overlap']:.0%} of the time that overlap can hide is hidden"
    return f"Overlapped stages are {', '.join(gains)}; {hidden}."


def _way(record: Record) -> str:
    who: str = record["who"]
    return WAYS.get(who, who)


def _paces(ticks: Sequence[Record]) -> Figure:
    points = [{"who": "ours", "x": _way(one), "y": one["value"], **ends(one)} for one in ticks]
    caption = "Examples a second, with 95 % intervals of the medians"
    return Figure("overlap-pace", caption, "overlap-pace", points, "", "examples/s", log="", kind="bars")


def _pace_table(ticks: Sequence[Record]) -> Table:
    rows: list[list[Cell]] = []
    for one in ticks:
        low, high = one.get("interval") or (None, None)
        over = 1 / one["efficiency"] if one["efficiency"] else None
        where = one["env"].get("cpu", "CPU") if one["device"] == "cpu" else one["device"]
        rows.append([_way(one), where, one["threads"], one["value"], low, high, one["overlap"], over])
    return Table("overlap-pace", "The same ticks, serial and overlapped", PACE, rows, "python -m bench overlap")


def _intervals(ticks: Sequence[Record]) -> list[dict[str, Any]]:
    """Returns one tick in turn and one overlapped, in milliseconds."""
    return [
        {"way": _way(one), **each, "start": 1e3 * each["start"], "end": 1e3 * each["end"]}
        for one in ticks
        if one["who"] in ("serial-one-core", "in turn", "overlapped")
        for each in one["timeline"]
    ]


def _timeline(ticks: Sequence[Record]) -> Figure:
    found = _intervals(ticks)
    points = [
        {"who": one["stage"], "x": one["start"], "end": one["end"], "y": f"{one['way']}: {one['queue']}"}
        for one in found
    ]
    caption, x = "The stages of one tick by queue (not the median tick)", "milliseconds since the tick began"
    return Figure("overlap-timeline", caption, "overlap-timeline", points, x, "", log="", kind="timeline")


def _timeline_table(ticks: Sequence[Record]) -> Table:
    found = sorted(_intervals(ticks), key=lambda one: (one["way"], one["queue"], one["start"]))
    rows: list[list[Cell]] = [
        [one["way"], one["queue"], one["stage"], one["micro"], one["start"], one["end"]] for one in found
    ]
    return Table("overlap-timeline", "The stages of that tick", LINE, rows, "python -m bench overlap")


def _busy_rows(records: Sequence[Record]) -> list[dict[str, Any]]:
    quiet = {one["work"]: statistics.median(one["samples"]) for one in records if one["params"]["load"] == 0}
    return [
        {
            "work": one["work"].removeprefix("busy."),
            "load": one["params"]["load"],
            "value": statistics.median(one["samples"]),
            "share": statistics.median(one["samples"]) / quiet[one["work"]],
            "slow": 1e3 * one["p99_seconds"],
        }
        for one in records
        if one["work"] in quiet
    ]
