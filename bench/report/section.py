"""Sections of the report that `python -m bench all` writes, and the steps that measure for them.

A file of bench/report/sections has `section(records) -> Section`, which measures nothing, so that any machine can rebuild a
report from its results.jsonl. It also has STEPS, the benchmarks that write its records, and PLACE, its position on the page.
"""

import importlib
import importlib.util
import os
import pkgutil
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from types import ModuleType
from typing import Any

from bench.report import sections
from hybrid.machine import memory

STEP = "all.step"  # the work of a record of a step's state
RESULTS = "results.jsonl"
GIB = 2**30
NONE = "\u2013"  # a dash
Record = dict[str, Any]
Cell = str | float | int | None


@dataclass(frozen=True)
class Table:
    """Numbers of a section, in a file NAME.csv, and on the page unless there are more than page.LONGEST rows.

    command  the command that reproduces the figures
    """

    name: str
    caption: str
    header: list[str]
    rows: list[list[Cell]]
    command: str


def lines_of(table: Table) -> list[str]:
    """Returns a table as Markdown; columns of numbers are right-aligned."""
    columns = [[cell for cell in column if cell is not None] for column in zip(*table.rows, strict=True)]
    numbers = [bool(column) and all(isinstance(cell, int | float) for cell in column) for column in columns]
    rules = ["---:" if number else "---" for number in numbers] or ["---"] * len(table.header)
    rows = [table.header, rules, *([shown(cell) for cell in row] for row in table.rows)]
    return [f"| {' | '.join(cell.replace('|', chr(92) + '|').replace(chr(10), ' ') for cell in row)} |" for row in rows]


def drawn(rows: Sequence[Sequence[str]]) -> list[str]:
    """Returns rows as Markdown, the header first."""
    return [f"| {' | '.join(row)} |" for row in (rows[0], ["---"] * len(rows[0]), *rows[1:])]


def shown(cell: Cell) -> str:
    """Formats three or more digits of a measured number, all digits of a count."""
    if cell is None:
        return NONE
    if isinstance(cell, str):
        return cell
    if isinstance(cell, int):
        return f"{cell:,}"
    return f"{cell:,.0f}" if 1000 <= abs(cell) < 1e9 else f"{cell:.3g}"


@dataclass(frozen=True)
class Figure:
    """A picture of a section, in NAME.svg.

    caption  below the figure, and its alternative text
    table    the name of the table that has its numbers
    points   each with x, y and `who`, its series; "low" and "high" are the ends of an interval of y
    x, y     titles of the axes; log: the logarithmic ones
    kind     "lines"; "bars", one per series at each x; "timeline", where y is a lane and points have an "end"
    """

    name: str
    caption: str
    table: str
    points: list[dict[str, Any]]
    x: str
    y: str
    log: str = "xy"
    kind: str = "lines"


@dataclass(frozen=True)
class Section:
    """One question and its answer.

    answer    paragraphs in Markdown; every number in them is computed from the records
    gaps      missing measurements, with the reason
    abstract  the answer in one or two sentences, for the top of the page
    """

    title: str
    answer: list[str]
    figures: list[Figure] = field(default_factory=list)
    tables: list[Table] = field(default_factory=list)
    gaps: list[str] = field(default_factory=list)
    abstract: str = ""


def clock(seconds: float) -> str:
    """Formats minutes and seconds."""
    minutes, rest = divmod(round(seconds), 60)
    return f"{minutes}:{rest:02}"


def ends(record: Record) -> dict[str, float | None]:
    """Returns the interval of a record's value, in the form of points of figures."""
    low, high = record.get("interval") or (None, None)
    return {"low": low, "high": high}


@dataclass(frozen=True)
class Step:
    """One benchmark.

    name          in progress messages and gaps
    command       arguments after `python -m bench`, without --json, --threads, --repeat
    worth         steps of higher worth run first
    minutes       approximate, of the full size on two cores
    quick         the command in quick mode, to which --quick is added; None: it has no small size
    needs         requirements of the machine: names of NEEDS
    memory        GiB of the full size
    """

    name: str
    command: tuple[str, ...]
    worth: int
    minutes: float
    quick: tuple[str, ...] | None = None
    needs: tuple[str, ...] = ()
    memory: float = 0.0


def found_sections() -> dict[str, ModuleType]:
    """Returns the files of bench/report/sections by name, in the order of the page."""
    names = (found.name for found in pkgutil.iter_modules(sections.__path__))
    modules = {name: importlib.import_module(f"bench.report.sections.{name}") for name in names}
    return dict(sorted(modules.items(), key=lambda one: (one[1].PLACE, one[0])))


def found_steps(only: Sequence[str] | None = None) -> list[tuple[str, Step]]:
    """Returns the steps of all or some sections, with the names of the sections, by falling worth."""
    steps = [
        (name, step) for name, module in found_sections().items() if not only or name in only for step in module.STEPS
    ]
    return sorted(steps, key=lambda one: -one[1].worth)


def lacks(step: Step, quick: bool) -> str | None:
    """Returns why this machine cannot run a step; None if it can."""
    if quick and step.quick is None:
        return "it has no small size, and this is quick mode"
    for need in step.needs:
        if reason := NEEDS[need]():
            return reason
    if quick:
        return None
    has = memory()
    if step.memory * GIB > has:
        return f"it takes {step.memory:g} GiB of memory, and the machine has {has / GIB:.1f}"
    return None


def _module(name: str, extra: str) -> str | None:
    return None if importlib.util.find_spec(name) else f"{name} is not installed: pip install 'hybrid-engine[{extra}]'"


def _data(name: str) -> str | None:
    path = Path(os.environ.get("HYBRID_DATA", "data")) / name
    return None if path.exists() else f"{path} is not there; HYBRID_DATA names the folder that holds {name}"


NEEDS: dict[str, Callable[[], str | None]] = {
    "labels": partial(_data, "labels/cooking.train"),
    "ml-100k": partial(_data, "ml-100k/u.data"),
    "mpi": partial(_module, "mpi4py", "mpi"),
    "torch": partial(_module, "torch", "bench"),
    "wikitext-2": partial(_data, "wikitext-2"),
}
