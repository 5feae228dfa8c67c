"""Pictures of what `python -m bench quality` recorded: figures against seconds of training, a line a contender."""

import statistics
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from hybrid.train import plots


def draw(path: Path, rows: Sequence[Any]) -> None:
    """Every length a point, the mean over seeds of validation data, with a bar from the lowest to the highest; as PNG and PDF.

    rows  of bench/quality_tables.py
    """
    judged = rows[0].lengths[0].records[0]["judged"]
    with plots.drawn(path, 6.5, 4.2) as picture:
        axis = picture.subplots()
        for number, row in enumerate(rows):
            _line(axis, row, judged, f"C{number % 10}", "-" if number < 10 else "--")
        axis.set_xscale("log")
        axis.set_xlabel("seconds of training")
        axis.set_ylabel(judged)
        if rows[0].lowest:
            plots.logarithmic(axis)
        axis.legend(fontsize=7)


def _line(axis: Any, row: Any, judged: str, colour: str, style: str) -> None:
    found = sorted((one.seconds, one.values("valid", judged)) for one in row.lengths if one.values("valid", judged))
    if not found:
        return
    middle = [statistics.mean(values) for _, values in found]
    off = [
        [at - min(values) for at, (_, values) in zip(middle, found, strict=True)],
        [max(values) - at for at, (_, values) in zip(middle, found, strict=True)],
    ]
    seconds = [each for each, _ in found]
    axis.errorbar(
        seconds, middle, off, color=colour, linestyle=style, marker="o", markersize=3, linewidth=1.2, label=row.who
    )
