"""The picture of a run: errors over steps."""

import io
from pathlib import Path

from .. import atomic


def draw(path: Path, points: list[dict]) -> None:
    """Plot the error of each layer, and that of predicting the next frame beside that of repeating the last.

    points  of a report's "curve"
    """
    from matplotlib.figure import Figure
    from matplotlib.ticker import FuncFormatter, LogLocator

    picture = Figure(figsize=(11, 4), layout="constrained")
    layers, frames = picture.subplots(1, 2)
    steps = [point["step"] for point in points]
    for layer in range(len(points[0]["error"]) if points else 0):
        layers.plot(steps, [point["error"][layer] for point in points], color=f"C{layer % 10}", label=f"layer {layer}")
    layers.set_title("mean |error| of a layer's units")
    known = [point for point in points if point["prediction"] is not None]
    for name, label, colour in (("prediction", "prediction", "C0"), ("last_frame", "repeating the last frame", "C7")):
        frames.plot([point["step"] for point in known], [point[name] for point in known], color=colour, label=label)
    frames.set_title("mean |error| of the next frame, pixels in 0..1")
    for axis in (layers, frames):
        axis.set_xlabel("steps")
        axis.set_yscale("log")
        axis.yaxis.set_minor_locator(LogLocator(subs=(2, 5)))
        for ticks in (axis.yaxis.set_major_formatter, axis.yaxis.set_minor_formatter):
            ticks(FuncFormatter(lambda value, _: f"{value:g}"))
        axis.grid(alpha=0.3)
        if points:
            axis.legend(fontsize="small")
    data = io.BytesIO()
    picture.savefig(data, dpi=110)
    atomic.write(path, [data.getvalue()])
