"""Method and environment: the measurement procedure, the machine and its load, and the state of each step."""

from collections.abc import Sequence

from bench.harness.measure import CONFIDENCE, LEAST, NOISY
from bench.harness.quiet import BUSY, Load
from bench.report.section import STEP, Cell, Record, Section, Step, Table, clock

PLACE = 100
STEPS: list[Step] = []
CLOCK = (
    "The clock includes a whole step of training: forward, loss, backward, update, copies to and from a device. It excludes "
    "making the data, compiling and checking. A section with another clock says so."
)


def section(records: Sequence[Record]) -> Section:
    """Describes what holds for every figure above."""
    steps = [one for one in records if one["work"] == STEP]
    timed = [one for one in records if one.get("samples") and one["work"] != STEP]
    answer = [_rules(steps), CLOCK, _noise(timed), _load(timed)]
    tables = [table for table in (_steps(steps), _noisy(timed)) if table.rows]
    return Section("Method and environment", [text for text in answer if text], tables=tables)


def _rules(steps: Sequence[Record]) -> str:
    quick = any(one["quick"] for one in steps)
    turns = "few turns, since this is quick mode" if quick else f"at least {LEAST} turns"
    return (
        "Every result is checked before it is timed: against float64 NumPy, or the losses of all rivals with each other. "
        f"After a warm-up, rivals take turns ({turns}), with the same number of threads for every library. A figure is the "
        f"median of its samples, with a {CONFIDENCE:.0%} bootstrap interval; results.jsonl has all samples. One benchmark runs "
        f"at a time. Nothing is timed while other processes take over {BUSY:.0%} of the cores, unless `--anyway` was given; "
        "the records have the load."
    )


def _noise(timed: Sequence[Record]) -> str:
    noisy = [one for one in timed if one.get("spread", 0) > NOISY]
    if not timed:
        return ""
    return (
        f"{len(noisy)} of {len(timed)} figures are noisy: the range of their samples exceeds {NOISY:.0%} of the median, also "
        "after further rounds of turns. Other work on the machine may have affected them. They are listed below."
    )


def _load(timed: Sequence[Record]) -> str:
    loads = [Load(**one["load"]) for one in timed if one.get("load")]
    if not loads:
        return "The load of the machine was not recorded (quick mode, or no Linux)." if timed else ""
    most = max(loads, key=lambda load: load.others + load.stolen)
    busy = sum(load.busy for load in loads)
    return (
        f"During {len(loads)} of the figures other processes took at most {most.others:.2f} of {most.cores} cores, and other "
        f"guests of the host {most.stolen:.2f}; {busy} of them count as measured on a busy machine."
    )


def _steps(steps: Sequence[Record]) -> Table:
    header = ["step", "command", "state", "took", "ended", "reason"]
    rows: list[list[Cell]] = []
    for one in steps:
        took = clock(one["seconds"]) if one["state"] == "done" else None
        command = f"`{one['params']['command']}`"
        rows.append([one["params"]["step"], command, one["state"], took, one["ended"], one["reason"] or None])
    return Table(
        "steps", "The steps of this report, in minutes and seconds", header, rows, "python -m bench all --out DIR"
    )


def _noisy(timed: Sequence[Record]) -> Table:
    rows: list[list[Cell]] = [
        [
            one["work"],
            ", ".join(f"{name} {value}" for name, value in one["params"].items()),
            one["who"],
            100 * one["spread"],
        ]
        for one in timed
        if one.get("spread", 0) > NOISY
    ]
    header = ["work", "params", "who", "range of samples, % of the median"]
    return Table("noisy", "Noisy figures", header, rows, "python -m bench all --out DIR")
