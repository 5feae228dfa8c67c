"""Arithmetic intensity: operations per byte of every stage, under the roof of the machine."""

import statistics
from collections.abc import Sequence

from bench.report.section import Cell, Figure, Record, Section, Step, Table

PLACE = 90
STEPS = [Step("intensity", ("intensity",), 60, 3, quick=("intensity",), memory=4)]
WORK, COMMAND = "intensity.stage", "python -m bench intensity"
ASKED = 10, 50  # operations per fetch, on slides of courses on GPUs
FETCH = 4  # bytes: a float32
HEADER = [
    *("stage", "sizes", "threads", "operations", "bytes", "operations a byte", "operations a fetch"),
    *("GFLOP/s", "lowest of 95 %", "highest of 95 %", "roof, GFLOP/s", "share of the roof", "bound by"),
]


def section(records: Sequence[Record]) -> Section:
    """Shows all stages in one picture."""
    stages = [one for one in records if one["work"] == WORK]
    if not stages:
        return Section("Arithmetic intensity", [], gaps=["No stage has been measured."])
    peak, passing = (statistics.median(one[name] for one in stages) for name in ("peak", "bandwidth"))
    alt = _summary(stages, peak, passing)
    caption = "Operations and bytes of one run, counted by formula; what it reached, and what the machine allows"
    table = Table("intensity", caption, HEADER, [*map(_row, stages)], COMMAND)
    return Section("Arithmetic intensity", [alt], [_roofline(stages, peak, passing, alt)], [table])


def _summary(stages: Sequence[Record], peak: float, passing: float) -> str:
    by_memory = [one["params"]["stage"] for one in stages if _bound(one) == "memory"]
    low, high = ASKED
    reach = [one["params"]["stage"] for one in stages if one["intensity"] * FETCH >= low]
    return (
        f"This machine multiplies and adds {peak / 1e9:.3g} G times a second and moves {passing / 1e9:.3g} GB/s, so a stage of "
        f"fewer than {peak / passing:.3g} operations a byte is bound by memory: {_listed(by_memory)}. Slides of courses on "
        f"GPUs ask for {low} to {high} operations a fetch, which is {low / FETCH:g} to {high / FETCH:g} a byte of float32; "
        f"{_listed(reach)} have {low} a fetch or more. Bytes are the fewest that memory must move: each number that a stage "
        "uses is read once, and written once where it changes. A stage whose arrays stay in a cache moves fewer, and may so "
        "rise above the roof."
    )


def _listed(names: Sequence[str]) -> str:
    return ", ".join(dict.fromkeys(names)) or "none"


def _bound(one: Record) -> str:
    return "memory" if one["roof"] < one["peak"] else "arithmetic"


def _row(one: Record) -> list[Cell]:
    params = one["params"]
    low, high = (end / 1e9 for end in one["interval"]) if one.get("interval") else (None, None)
    return [
        *(params["stage"], params["sizes"], one["threads"], one["operations"], one["moved"], one["intensity"]),
        *(one["intensity"] * FETCH, one["value"] / 1e9, low, high, one["roof"] / 1e9, one["roof_share"], _bound(one)),
    ]


def _roofline(stages: Sequence[Record], peak: float, passing: float, alt: str) -> Figure:
    """Plots the roof as a line, and a point per stage."""
    balance, measured = peak / passing, [one["intensity"] for one in stages]
    corners = [min(*measured, balance) / 2, balance, 2 * max(*measured, balance)]
    points = [{"who": "the roof", "x": at, "y": min(peak, at * passing)} for at in corners]
    points += [{"who": one["params"]["stage"], "x": one["intensity"], "y": one["value"]} for one in stages]
    caption = "Stages under the roof of this machine"
    return Figure("intensity", caption, alt, "intensity", points, "operations a byte", "operations a second")
