"""The pictures of a run: how its figures went, and who worked when. Each as PNG and PDF; of curves the numbers as CSV too."""

import contextlib
import csv
import io
import math
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from ..schedule.trace import Interval, Trace
from ..storage import files

STYLE: Any = {
    "font.size": 9,
    "axes.titlesize": 9,
    "axes.grid": True,
    "grid.alpha": 0.3,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "legend.frameon": False,
    "pdf.fonttype": 42,  # letters, which journals ask for, not outlines
}
DOTS = 200  # an inch
SUFFIXES: dict[str, Any] = {".png": {"dpi": DOTS}, ".pdf": {"metadata": {"CreationDate": None}}}  # of each picture
FEW = 10  # times the smallest value, up to which plain ticks read better than powers

COLOURS = {
    "feed": "C5",
    "gather": "C2",
    "forward": "C0",
    "readout": "C3",
    "top": "#e377c2",
    "loss": "#7f7f7f",
    "backward": "C9",
    "scatter": "C8",
    "update": "C4",
    # of a Predictive Vision Model; "frame" is all of them at once
    "frame": "C0",
    "tick": "C0",
    "home": "C6",
}
COLOURS |= dict.fromkeys(("ids in", "bag_at in", "x in", "grad in", "target in", "frame in", "halo in"), "C1")
COLOURS |= dict.fromkeys(("hidden out", "x_grad out", "losses out", "halo out", "heat out"), "C6")
COLOURS |= {"edge": "C9", "send": "C3", "arrive": "C3"}  # of a model whose units ranks share
LABELS = {"loss": "training loss (nats), running mean"}
LETTER = 0.009  # width of a letter in a bar, as a share of the picture's


@contextlib.contextmanager
def drawn(path: Path, width: float, height: float, **style: Any) -> Iterator[Any]:
    """A matplotlib figure of so many inches to draw on; then it is written as PNG, and as PDF beside it."""
    import matplotlib
    from matplotlib.figure import Figure

    with matplotlib.rc_context(STYLE | style):
        picture = Figure(figsize=(width, height), layout="constrained")
        yield picture
        _save(picture, path)


def _save(picture: Any, path: Path) -> None:
    for suffix, settings in SUFFIXES.items():
        data = io.BytesIO()
        picture.savefig(data, format=suffix[1:], **settings)
        files.write(path.with_suffix(suffix), [data.getvalue()])


def table(path: Path, rows: Iterable[Mapping[str, Any]]) -> None:
    """Write CSV with a header of all names that occur, in their order."""
    rows = list(rows)
    text = io.StringIO()
    writer = csv.DictWriter(text, list(dict.fromkeys(name for row in rows for name in row)), lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    files.write(path, [text.getvalue().encode()])


def curve(path: Path, runs: dict[str, list[dict[str, Any]]], figure: str) -> None:
    """Plot `figure` of every run against seconds of training and against examples, beside what training made of it.

    runs  by label: the points of a report's "curve"

    Perplexity while training is exp of the running mean of the loss; another figure has the loss in a row of its own, and
    "loss" is drawn alone. The numbers go to a CSV beside the picture.
    """
    from matplotlib.ticker import EngFormatter

    alone = figure in ("loss", "perplexity") or not any("loss" in point for points in runs.values() for point in points)
    plotted = [figure] if alone else [figure, "loss"]
    with drawn(path, 7.5, 0.6 + 2.6 * len(plotted)) as picture:
        axes = picture.subplots(len(plotted), 2, sharex="col", sharey="row", squeeze=False)
        for row, name in zip(axes, plotted, strict=True):
            for axis, along in zip(row, ("seconds", "examples"), strict=True):
                for number, points in enumerate(runs.values()):
                    _line(axis, [point for point in points if point["examples"]], along, name, f"C{number}")
            row[0].set_ylabel(LABELS.get(name, name))
            if name == "perplexity":
                logarithmic(row[0])
        axes[-1][0].set_xlabel(_seconds(runs))
        axes[-1][1].set_xlabel("examples learned from")
        axes[-1][1].xaxis.set_major_formatter(EngFormatter(sep=" "))
        _legend(picture, list(runs), figure == "perplexity")
    table(path.with_suffix(".csv"), ({"run": label} | point for label, points in runs.items() for point in points))


def _colour(stage: str) -> str:
    """Of a stage; where it has several steps, such as "backward 1", these have the same."""
    return COLOURS.get(stage.rstrip(" 0123456789"), "C7")


def _line(axis: Any, points: list[dict[str, Any]], along: str, name: str, colour: str) -> None:
    """A figure; of perplexity that of the training examples too, dashed."""
    x = [point[along] for point in points]
    axis.plot(x, [point[name] for point in points], color=colour, marker="o", markersize=2.5, linewidth=1.2)
    if name == "perplexity":
        axis.plot(
            x, [math.exp(min(point["loss"], 700)) for point in points], color=colour, linestyle="--", linewidth=0.9
        )


def _legend(picture: Any, labels: list[str], trained: bool) -> None:
    """Above the axes: a colour a run, and how validation and training are drawn."""
    from matplotlib.lines import Line2D

    handles = [Line2D([], [], color=f"C{number}", label=label) for number, label in enumerate(labels)]
    if trained:
        handles.append(Line2D([], [], color="0.3", marker="o", markersize=2.5, label="validation"))
        handles.append(Line2D([], [], color="0.3", linestyle="--", label="training, running mean"))
    picture.legend(handles=handles, loc="outside upper center", ncols=len(handles), fontsize=8)


def _seconds(runs: dict[str, list[dict[str, Any]]]) -> str:
    """The clock's axis, and what it leaves out."""
    spent = [points[-1].get("evaluation_seconds", 0.0) for points in runs.values() if points]
    besides = ", ".join(f"{seconds:.3g}" for seconds in spent)
    return f"seconds of training (evaluation besides: {besides} s)" if any(spent) else "seconds of training"


def logarithmic(axis: Any) -> None:
    """Make the y axis logarithmic, with ticks that are plain numbers."""
    from matplotlib.ticker import AutoLocator, FuncFormatter, LogLocator, NullLocator

    axis.set_yscale("log")
    low, high = axis.get_ylim()
    axis.yaxis.set_major_locator(AutoLocator() if high < FEW * low else LogLocator(subs=(1, 2, 5)))
    axis.yaxis.set_minor_locator(NullLocator())
    axis.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,.4g}"))


def last_ticks(folder: Path, trace: Trace) -> None:
    """Write the last ticks of a trace, if there are any, to timeline.json, and draw them: timeline.png and .pdf."""
    if trace.recent:
        trace.write_chrome(folder / "timeline.json")
        timeline(folder / "timeline.png", trace)


def timeline(path: Path, trace: Trace, ticks: int = 3) -> None:
    """Draw the last ticks of a trace: a row a queue, a bar a stage, with its name and, of several, its micro-batch."""
    from matplotlib.patches import Patch

    intervals = sorted(trace.last_ticks(ticks), key=lambda i: i.start)
    queues = sorted({i.queue for i in intervals})
    # The feed of a tick was read during the one before: what comes before the first tick's own stages is cut off.
    begins = {i.tick: i.start for i in reversed(intervals) if i.stage != "feed"} or {
        intervals[0].tick: intervals[0].start
    }
    origin = min(begins.values())
    whole = max(i.end for i in intervals) - origin
    several = any(i.micro for i in intervals)
    with drawn(path, 7.5, 1.3 + 0.5 * len(queues), **{"axes.grid": False}) as picture:
        axis = picture.subplots()
        for i in intervals:
            row, start, length = queues.index(i.queue), 1e3 * (i.start - origin), 1e3 * (i.end - i.start)
            axis.barh(row, length, left=start, color=_colour(i.stage), edgecolor="white", linewidth=0.4)
            shown = _inscription(i, several, (i.end - i.start) / whole)
            axis.text(start + length / 2, row, shown, ha="center", va="center", fontsize=6, color="white", clip_on=True)
        for start in begins.values():
            axis.axvline(1e3 * (start - origin), color="0.6", linewidth=0.6, linestyle=":", zorder=0)
        axis.set_yticks(range(len(queues)), queues)
        axis.set_xlim(0, 1e3 * whole)
        axis.set_xlabel(
            f"milliseconds; ticks {intervals[0].tick} to {intervals[-1].tick}, a dotted line where one begins"
        )
        patches = [Patch(color=_colour(stage), label=stage) for stage in dict.fromkeys(i.stage for i in intervals)]
        axis.legend(handles=patches, ncols=8, loc="lower center", bbox_to_anchor=(0.5, 1.0), fontsize=8)


def _inscription(interval: Interval, several: bool, share: float) -> str:
    """The longest that a bar of this share of the width has room for: stage and micro-batch, one of them, or nothing."""
    micro = str(interval.micro) if several else ""
    for text in (f"{interval.stage} {micro}".strip(), micro or interval.stage):
        if len(text) * LETTER < share:
            return text
    return ""
