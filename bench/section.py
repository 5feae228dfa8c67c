"""A section of the report that `python -m bench all` writes: what it says, draws and lists, made of records alone.

Every file of bench/sections has one function, `section(records) -> Section`: nothing in it measures, so that a report can be
made again from its results.jsonl, on any machine. How sections look is the business of the page, not theirs.
"""

from dataclasses import dataclass, field
from typing import Any

Cell = str | float | int | None


@dataclass(frozen=True)
class Table:
    """Numbers of a section; they are on the page, and in a file NAME.csv beside it.

    command  which repeats the figures, as a user types it
    """

    name: str
    caption: str
    header: list[str]
    rows: list[list[Cell]]
    command: str


@dataclass(frozen=True)
class Figure:
    """A picture of a section, in NAME.svg.

    chart  an altair chart with its data in it, without a width or colours of its own
    told   what a reader learns from it who cannot see it
    table  the name of the table that has its numbers
    """

    name: str
    caption: str
    chart: Any
    told: str
    table: str


@dataclass(frozen=True)
class Section:
    """One question and its answer.

    answer  paragraphs in Markdown; every number in them is worked out from the records
    gaps    what was not measured, with the reason
    """

    title: str
    answer: list[str]
    figures: list[Figure] = field(default_factory=list)
    tables: list[Table] = field(default_factory=list)
    gaps: list[str] = field(default_factory=list)
