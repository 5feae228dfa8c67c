"""The trials of a sweep as one table, best first, in Markdown that reads well in a terminal too."""

from collections.abc import Sequence
from typing import Any

from .records import Record


def markdown(records: Sequence[Record], figure: str, length: str) -> str:
    """A row a record: its trial, its options, its figure, seconds of training; where it failed, the cause.

    length  what lengths are counted in; shown where records have one
    """
    names = list(dict.fromkeys(name for record in records for name in record.options))
    halved = any(record.length for record in records)
    head = ["trial", *([length] if halved else []), *names, figure, "seconds"]
    failed = any(record.cause for record in records)
    rows = []
    for record in records:
        row = [record.trial, *([record.length] if halved else []), *(record.options.get(name) for name in names)]
        rows.append([*map(_shown, [*row, record.value, record.seconds]), *([record.cause or ""] if failed else [])])
    return _aligned([[*head, *(["failed"] if failed else [])], *rows])


def _shown(value: Any) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, float):
        return f"{value:.5g}"
    return "" if value is None else str(value)


def _aligned(rows: list[list[str]]) -> str:
    """The first row is the head."""
    rows = [[cell.replace("|", "\\|") for cell in row] for row in rows]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    lines = [
        "| " + " | ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)) + " |" for row in rows
    ]
    return "\n".join([lines[0], "| " + " | ".join("-" * width for width in widths) + " |", *lines[1:]]) + "\n"
