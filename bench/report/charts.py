"""Figures of sections as SVG, by Matplotlib: one look, in colours that colour-blind eyes tell apart."""

import itertools
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from bench.report.section import Figure

# In order of use; each has a contrast of 3 or more to its background, as graphics must have by WCAG 2.
SERIES = ["#0072b2", "#d55e00", "#00835f", "#a8487f", "#8a6a00", "#5b5b5b", "#5a50c8", "#8b1a1a", "#c4008f", "#4a7a00"]
MARKERS = "os^DPvX<>*"
SIZE = 7.2, 4.2  # inches
LOOK: Any = {
    "svg.fonttype": "none",  # text stays text
    "font.family": "sans-serif",
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "axes.axisbelow": True,
    "grid.color": "#dfe3e8",
    "legend.frameon": False,
    "legend.fontsize": 9,
}


def write(figure: Figure, folder: Path) -> None:
    """NAME.svg, the same bytes from the same figure."""
    import matplotlib
    from matplotlib.figure import Figure as Canvas

    path = folder / f"{figure.name}.svg"
    with matplotlib.rc_context({**LOOK, "svg.hashsalt": figure.name}):
        canvas = Canvas(figsize=SIZE, layout="constrained")
        axes = canvas.subplots()
        {"lines": _lines, "bars": _bars, "timeline": _timeline}[figure.kind](axes, figure.points)
        axes.set(xlabel=figure.x, ylabel=figure.y)
        for name in figure.log:
            getattr(axes, f"set_{name}scale")("log")
        canvas.legend(*axes.get_legend_handles_labels(), loc="outside lower center", ncols=3)
        canvas.savefig(path, metadata={"Date": None})
    text = path.read_text()
    text = " ".join(text[text.index("<svg") :].split())
    # On one page names of parts are one of a kind
    path.write_text(re.sub(r'( id="|url\(#|href="#)', rf"\1{figure.name}-", text) + "\n")


def _series(points: Sequence[dict[str, Any]]) -> dict[str, list[dict[str, Any]]]:
    found: dict[str, list[dict[str, Any]]] = {}
    for point in points:
        found.setdefault(point["who"], []).append(point)
    return found


def _interval(points: Sequence[dict[str, Any]]) -> list[list[float]]:
    """How far each lies from the ends of its interval; nothing where it has none."""
    return [
        [max(point["y"] - (point.get("low") or point["y"]), 0) for point in points],
        [max((point.get("high") or point["y"]) - point["y"], 0) for point in points],
    ]


def _lines(axes: Any, points: Sequence[dict[str, Any]]) -> None:
    for (who, some), colour, marker in zip(
        _series(points).items(), itertools.cycle(SERIES), itertools.cycle(MARKERS), strict=False
    ):
        some = sorted(some, key=lambda point: point["x"])
        x, y = ([point[name] for point in some] for name in "xy")
        axes.errorbar(x, y, _interval(some), color=colour, marker=marker, markersize=5, label=who)


def _bars(axes: Any, points: Sequence[dict[str, Any]]) -> None:
    """A group of bars a place on the x axis, one of each series."""
    places = list(dict.fromkeys(point["x"] for point in points))
    series = _series(points)
    width = 0.8 / len(series)
    for number, (who, some) in enumerate(series.items()):
        at = [places.index(point["x"]) + (number - (len(series) - 1) / 2) * width for point in some]
        heights = [point["y"] for point in some]
        axes.bar(at, heights, width, yerr=_interval(some), color=SERIES[number % len(SERIES)], label=who)
    axes.set_xticks(range(len(places)), places, rotation=15)


def _timeline(axes: Any, points: Sequence[dict[str, Any]]) -> None:
    """A lane each `y`, from x to `end`, with a colour each series."""
    lanes = list(dict.fromkeys(point["y"] for point in points))
    for number, (who, some) in enumerate(_series(points).items()):
        lane, left = [lanes.index(point["y"]) for point in some], [point["x"] for point in some]
        length = [point["end"] - point["x"] for point in some]
        axes.barh(lane, length, left=left, color=SERIES[number % len(SERIES)], label=who)
    axes.set_yticks(range(len(lanes)), lanes)
    axes.invert_yaxis()
