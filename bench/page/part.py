"""A section of the page, with its name and what was not done for it."""

from collections.abc import Sequence
from typing import Any, NamedTuple

from bench.runner import STEP
from bench.section import Figure, Section, Table
from bench.steps import found_sections, found_steps

Record = dict[str, Any]


class Part(NamedTuple):
    """name: of its file, and of its place on the page; gaps: the section's own, and steps that were not done."""

    name: str
    section: Section
    gaps: list[str]


def parts(records: Sequence[Record]) -> list[Part]:
    """All sections, in the order of the page."""
    found = []
    for name, module in found_sections().items():
        made: Section = module.section(records)
        found.append(Part(name, made, [*made.gaps, *undone(name, records)]))
    return found


def undone(section: str, records: Sequence[Record]) -> list[str]:
    """The steps of a section that were not done, with the reason."""
    states = {one["params"]["step"]: one for one in records if one["work"] == STEP}
    found = []
    for _, step in found_steps([section]):
        if step.name not in states:
            found.append(f"{step.name}: not begun yet")
        elif states[step.name]["state"] != "done":
            found.append(f"{step.name}: {states[step.name]['state']}, {states[step.name]['reason']}")
    return found


def laid_out(section: Section) -> list[tuple[str, Figure | Table]]:
    """Figures and tables in the order of the page: that of the tables, each after the figures that it has the numbers of.

    Raises ValueError for a figure without a table.
    """
    found: list[tuple[str, Figure | Table]] = []
    for table in section.tables:
        found += [("figure", figure) for figure in section.figures if figure.table == table.name]
        found.append(("table", table))
    for figure in section.figures:
        if ("figure", figure) not in found:
            raise ValueError(f"figure {figure.name}: the section has no table {figure.table!r}")
    return found
