"""The picture of a run: errors over steps."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from ...train import plots

FRAMES = {"prediction": ("prediction", "C0"), "last_frame": ("repeating the last frame", "C7")}


def draw(path: Path, points: list[dict[str, Any]]) -> None:
    """Plot the error of each layer, and that of predicting the next frame beside that of repeating the last.

    points  of a report's "curve"; they go to a CSV beside the picture
    """
    with plots.drawn(path, 7.5, 3.1) as picture:
        layers, frames = picture.subplots(1, 2)
        steps = [point["step"] for point in points]
        for layer in range(len(points[0]["error"]) if points else 0):
            y = [point["error"][layer] for point in points]
            layers.plot(steps, y, color=f"C{layer % 10}", linewidth=1.2, label=f"layer {layer}")
        layers.set_title("mean |error| of a layer's units")
        known = [point for point in points if point["prediction"] is not None]
        for name, (label, colour) in FRAMES.items():
            x, y = [point["step"] for point in known], [point[name] for point in known]
            last = y[-max(len(y) // 10, 1) :]
            said = f"{label}: {sum(last) / len(last):.4f}" if last else label
            frames.plot(x, y, color=colour, linewidth=1.2, label=said)
        frames.set_title("mean |error| of the next frame, pixels in 0..1")
        for axis in (layers, frames):
            axis.set_xlabel("steps")
            plots.logarithmic(axis)
            if points:
                axis.legend(fontsize=8, title="means of the last tenth" if axis is frames else None, title_fontsize=8)
        _ticks_between(frames)
    plots.table(path.with_suffix(".csv"), _rows(points))


def _ticks_between(axis: Any) -> None:
    """Add ticks within a decade, so that two curves can be told apart at the end of a long fall."""
    from matplotlib.ticker import LogLocator

    low, high = axis.get_ylim()
    if 2 * low < high < 100 * low:
        axis.yaxis.set_major_locator(LogLocator(subs=(1, 1.5, 2, 2.5, 3, 4, 5, 7)))


def _rows(points: list[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    """The points, with a column a layer."""
    for point in points:
        errors = {f"error of layer {layer}": error for layer, error in enumerate(point["error"])}
        yield {name: value for name, value in point.items() if name != "error"} | errors
