"""Pictures of a run: curves and timelines, as PNG and PDF; curve data also as CSV."""

import contextlib
import csv
import io
import math
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from ..schedule.trace import Interval, Trace
from ..storage import files

STYLE: Any = {"font.size": 9, "axes.titlesize": 9, "axes.grid": True, "grid.alpha": 0.3, "legend.frameon": False}
STYLE |= {"axes.spines.top": False, "axes.spines.right": False}
STYLE["pdf.fonttype"] = 42  # embedded fonts, as journals require, not outlines
DOTS = 200  # dots per inch
SUFFIXES: dict[str, Any] = {".png": {"dpi": DOTS}, ".pdf": {"metadata": {"CreationDate": None}}}  # per picture
FEW = 10  # times the minimum: up to this range, plain tick labels are clearer than powers

COLOURS = {"feed": "C5", "gather": "C2", "forward": "C0", "readout": "C3", "top": "#e377c2", "loss": "#7f7f7f"}
COLOURS |= {"backward": "C9", "scatter": "C8", "update": "C4"}
COLOURS |= {"frame": "C0", "tick": "C0", "home": "C6"}  # of a Predictive Vision Model; "frame" covers all of its stages
COLOURS |= dict.fromkeys(("ids in", "bag_at in", "x in", "grad in", "target in", "frame in", "halo in"), "C1")
COLOURS |= dict.fromkeys(("hidden out", "x_grad out", "losses out", "halo out", "heat out"), "C6")
COLOURS |= {"edge": "C9", "send": "C3", "arrive": "C3"}  # of a PVM on several ranks
LABELS = {"loss": "training loss (nats), running mean"}
LETTER = 0.009  # width of a letter as a fraction of the picture's


@contextlib.contextmanager
def drawn(path: Path, width: float, height: float, **style: Any) -> Iterator[Any]:
    """A context with a matplotlib figure, size in inches; on exit it is written as PNG and PDF."""
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
    """Writes CSV with a header of all names, in order of appearance."""
    rows = list(rows)
    text = io.StringIO()
    writer = csv.DictWriter(text, list(dict.fromkeys(name for row in rows for name in row)), lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    files.write(path, [text.getvalue().encode()])


def curve(path: Path, runs: dict[str, list[dict[str, Any]]], figure: str) -> None:
    """Plots `figure` of every run against training seconds and examples, with the training curve.

    runs  label -> the points of a report's "curve"

    Training perplexity is exp of the running mean loss. For other figures, the loss has its own row; "loss" is drawn alone.
    The numbers are also written as CSV.
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


def _line(axis: Any, points: list[dict[str, Any]], along: str, name: str, colour: str) -> None:
    """Plots a figure; for perplexity, also that of the training examples, dashed."""
    x = [point[along] for point in points]
    axis.plot(x, [point[name] for point in points], color=colour, marker="o", markersize=2.5, linewidth=1.2)
    if name == "perplexity":
        trained = [math.exp(min(point["loss"], 700)) for point in points]
        axis.plot(x, trained, color=colour, linestyle="--", linewidth=0.9)


def _legend(picture: Any, labels: list[str], trained: bool) -> None:
    """Adds a legend above the axes: one colour per run, and the line styles of validation and training."""
    from matplotlib.lines import Line2D

    handles = [Line2D([], [], color=f"C{number}", label=label) for number, label in enumerate(labels)]
    if trained:
        handles.append(Line2D([], [], color="0.3", marker="o", markersize=2.5, label="validation"))
        handles.append(Line2D([], [], color="0.3", linestyle="--", label="training, running mean"))
    picture.legend(handles=handles, loc="outside upper center", ncols=len(handles), fontsize=8)


def _seconds(runs: dict[str, list[dict[str, Any]]]) -> str:
    """Returns the label of the time axis, with the excluded evaluation time."""
    spent = [points[-1].get("evaluation_seconds", 0.0) for points in runs.values() if points]
    besides = ", ".join(f"{seconds:.3g}" for seconds in spent)
    return f"seconds of training (evaluation besides: {besides} s)" if any(spent) else "seconds of training"


def logarithmic(axis: Any) -> None:
    """Makes the y axis logarithmic, with plain numbers as labels."""
    from matplotlib.ticker import AutoLocator, FuncFormatter, LogLocator, NullLocator

    axis.set_yscale("log")
    low, high = axis.get_ylim()
    axis.yaxis.set_major_locator(AutoLocator() if high < FEW * low else LogLocator(subs=(1, 2, 5)))
    axis.yaxis.set_minor_locator(NullLocator())
    axis.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,.4g}"))


def last_ticks(folder: Path, trace: Trace) -> None:
    """Writes the last steps of a trace, if any, to timeline.json, and draws them: timeline.png and .pdf."""
    if trace.recent:
        trace.write_chrome(folder / "timeline.json")
        timeline(folder / "timeline.png", trace)


def timeline(path: Path, trace: Trace, ticks: int = 3) -> None:
    """Draws a trace's last steps: one row per queue, one bar per stage with its name and any micro-batch number."""
    from matplotlib.patches import Patch

    intervals = sorted(trace.last_ticks(ticks), key=lambda i: i.start)
    queues = sorted({i.queue for i in intervals})
    # A step's feed was read during the previous one, so all before its first other stage is cut off.
    first = intervals[0]
    begins = {i.tick: i.start for i in reversed(intervals) if i.stage != "feed"} or {first.tick: first.start}
    origin = min(begins.values())
    whole = max(i.end for i in intervals) - origin
    several = any(i.micro for i in intervals)
    with drawn(path, 7.5, 1.3 + 0.5 * len(queues), **{"axes.grid": False}) as picture:
        axis = picture.subplots()
        for i in intervals:
            row, start, length = queues.index(i.queue), 1e3 * (i.start - origin), 1e3 * (i.end - i.start)
            axis.barh(row, length, left=start, color=COLOURS.get(i.stage, "C7"), edgecolor="white", linewidth=0.4)
            shown = _inscription(i, several, (i.end - i.start) / whole)
            axis.text(start + length / 2, row, shown, ha="center", va="center", fontsize=6, color="white", clip_on=True)
        for start in begins.values():
            axis.axvline(1e3 * (start - origin), color="0.6", linewidth=0.6, linestyle=":", zorder=0)
        axis.set_yticks(range(len(queues)), queues)
        axis.set_xlim(0, 1e3 * whole)
        axis.set_xlabel(f"milliseconds; steps {first.tick} to {intervals[-1].tick}, dotted where one begins")
        stages = dict.fromkeys(i.stage for i in intervals)
        patches = [Patch(color=COLOURS.get(stage, "C7"), label=stage) for stage in stages]
        axis.legend(handles=patches, ncols=8, loc="lower center", bbox_to_anchor=(0.5, 1.0), fontsize=8)


def _inscription(interval: Interval, several: bool, share: float) -> str:
    """Returns the longest label that fits a bar of this width fraction: stage and micro-batch, one of them, or ""."""
    micro = str(interval.micro) if several else ""
    for text in (f"{interval.stage} {micro}".strip(), micro or interval.stage):
        if len(text) * LETTER < share:
            return text
    return ""
