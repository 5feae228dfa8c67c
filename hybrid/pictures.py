"""The two pictures of a run: how the loss fell, and who worked when."""

from pathlib import Path

from .trace import Trace

COLOURS = {
    "feed": "C5",
    "gather": "C2",
    "forward": "C0",
    "readout": "C3",
    "backward": "C9",
    "scatter": "C8",
    "update": "C4",
}
COLOURS |= dict.fromkeys(("x in", "grad in", "target in"), "C1") | dict.fromkeys(
    ("hidden out", "x_grad out", "losses out"), "C6"
)
COLOURS |= {"frame": "C0", "frame in": "C1", "tick": "C0", "home": "C6"}  # of a PVM


def curve(path: Path, runs: dict[str, list[dict]], figure: str) -> None:
    """Plot `figure` of every run's curve against seconds of training, and against examples.

    runs  by label: the points of a report's "curve"
    """
    from matplotlib.figure import Figure
    from matplotlib.ticker import ScalarFormatter

    picture = Figure(figsize=(10, 4), layout="constrained")
    axes = picture.subplots(1, 2, sharey=True)
    for axis, along, title in zip(axes, ("seconds", "examples"), ("seconds of training", "examples"), strict=True):
        for number, (label, points) in enumerate(runs.items()):
            seen = [point for point in points if point["examples"]]
            x, y = [point[along] for point in seen], [point[figure] for point in seen]
            axis.plot(x, y, marker="o", markersize=3, color=f"C{number}", label=label)
        axis.set_xlabel(title)
        axis.grid(alpha=0.3)
    axes[0].set_ylabel(figure)
    axes[0].set_yscale("log")
    for ticks in (axes[0].yaxis.set_major_formatter, axes[0].yaxis.set_minor_formatter):
        ticks(ScalarFormatter())
    axes[0].legend()
    picture.savefig(path, dpi=110)


def timeline(path: Path, trace: Trace, ticks: int = 3) -> None:
    """Draw the last ticks of a trace: a row a queue, a bar a stage, the number in a bar its micro-batch."""
    from matplotlib.figure import Figure
    from matplotlib.patches import Patch

    intervals = trace.last_ticks(ticks)
    queues = sorted({i.queue for i in intervals})
    origin = min(i.start for i in intervals)
    picture = Figure(figsize=(11, 1.6 + 0.7 * len(queues)), layout="constrained")
    axis = picture.subplots()
    for i in intervals:
        row, start, length = queues.index(i.queue), 1e3 * (i.start - origin), 1e3 * (i.end - i.start)
        axis.barh(row, length, left=start, color=COLOURS.get(i.stage, "C7"), edgecolor="white", linewidth=0.4)
        if length > 0.02 * 1e3 * (max(j.end for j in intervals) - origin):
            axis.text(start + length / 2, row, str(i.micro), ha="center", va="center", fontsize=7, color="white")
    axis.set_yticks(range(len(queues)), queues)
    axis.set_xlabel(f"milliseconds, ticks {intervals[0].tick} to {intervals[-1].tick}; the number is the micro-batch")
    stages = dict.fromkeys(i.stage for i in intervals)
    patches = [Patch(color=COLOURS.get(stage, "C7"), label=stage) for stage in stages]
    axis.legend(handles=patches, ncols=6, loc="lower center", bbox_to_anchor=(0.5, 1.0), frameon=False)
    picture.savefig(path, dpi=110)
