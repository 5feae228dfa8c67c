"""The report of a training run, as figures and as human-readable lines."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from .. import machine
from ..schedule import trace
from ..train import plots
from .figures import compared, judged, saturation
from .live import Latest
from .model import PVM

FRAMES = {"prediction": ("prediction", "C0"), "last_frame": ("repeating the last frame", "C7")}


def draw_curve(path: Path, points: list[dict[str, Any]]) -> None:
    """Plots the error of each layer, and the prediction error of the next frame with that of repeating the last.

    points  of a report's "curve"; they go to a CSV next to the picture
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
            text = f"{label}: {sum(last) / len(last):.4f}" if last else label
            frames.plot(x, y, color=colour, linewidth=1.2, label=text)
        frames.set_title("mean |error| of the next frame, pixels in 0..1")
        for axis in (layers, frames):
            axis.set_xlabel("steps")
            plots.logarithmic(axis)
            if points:
                axis.legend(fontsize=8, title="means of the last tenth" if axis is frames else None, title_fontsize=8)
    rows = []
    for point in points:
        errors = {f"error of layer {layer}": error for layer, error in enumerate(point["error"])}
        rows.append({name: value for name, value in point.items() if name != "error"} | errors)
    plots.table(path.with_suffix(".csv"), rows)


def report(model: PVM, facts: Mapping[str, Any], rate: float, latest: Latest) -> dict[str, Any]:
    """Returns the figures of a run, JSON-compatible; errors are means over the last tenth of the curve.

    facts   of the run's progress
    rate    frames per second, of all streams
    latest  the latest views
    """
    points = facts["curve"]
    last = points[-max(len(points) // 10, 2) :]  # the very last may compare nothing
    prediction, repeated = (_mean([point[name] for point in last]) for name in ("prediction", "last_frame"))
    return {
        "configuration": model.config.name,
        "video": latest.video,
        "device": model.backend.name,
        "threads": model.threads,
        "streams": model.streams,
        "steps": model.tick,
        "seconds": facts["seconds"],
        "frames_per_second": rate,
        "parameters": model.size[0],
        "readout_parameters": model.size[1],
        "parameters_per_second": rate * model.size[0],
        "error": [_mean([point["error"][layer] for point in last]) for layer in range(len(model.config.grids))],
        **judged(prediction, repeated),
        **{name: value for name, value in points[-1].items() if name.startswith("valid")},
        "activity": [counts._asdict() for counts in latest.counts()],
        "averaged_from_step": points[-len(last) - 1]["step"] if len(points) > len(last) else 0,
        "model_bytes": sum(array.nbytes for array in model.arrays().values()),
        "peak_memory_bytes": machine.peak_memory(),
        "stages": model.trace.summary(),
        "curve": points,
    }


def warning(report: Mapping[str, Any]) -> str | None:
    """Returns a warning if hidden numbers are static and predictions are worse than the last frame; otherwise None."""
    numbers, dead = (sum(layer[name] for layer in report["activity"]) for name in ("numbers", "dead"))
    if 2 * dead <= numbers or (report["prediction_to_last_frame"] or 0) <= 1:
        return None
    return (
        f"{100 * dead / numbers:.0f} % of the hidden numbers are dead, and the prediction is worse than the last frame: the"
        " rates are too high, or the video stands still; lower those of `schedule` in the configuration"
    )


def engineering(value: float) -> str:
    """Formats 1234567 as 1.23 M."""
    for size, unit in ((1e9, " G"), (1e6, " M"), (1e3, " k")):
        if value >= size:
            return f"{value / size:.3g}{unit}"
    return f"{value:.3g}"


def text(report: Mapping[str, Any]) -> str:
    """Returns a report as human-readable lines."""
    units, readouts, steps = (f"{report[name]:,}" for name in ("parameters", "readout_parameters", "steps"))
    speed = f"{report['frames_per_second']:,.1f}; parameters a second: {engineering(report['parameters_per_second'])}"
    streams = f", {report['streams']} streams" if report["streams"] > 1 else ""
    held = {"model": report["model_bytes"], "process": report["peak_memory_bytes"]}
    memory = ", ".join(f"{size / 2**20:,.0f} MiB of the {name}" for name, size in held.items() if size is not None)
    lines = {
        "run": report["run"],
        "configuration": f"{report['configuration']}: {units} parameters, and {readouts} of readouts",
        "video": report["video"],
        "device": f"{report['device']}, {report['threads']} threads{streams}",
        "steps": f"{steps} in {report['seconds']:,.1f} s",
        "frames a second": speed,
        "memory": memory,
        "error a layer": "  ".join(f"{error:.4f}" for error in report["error"]),
        "next frame": compared(report),
        "hidden numbers": saturation(report["activity"]),
        "means since": f"step {report['averaged_from_step']:,}",
        "stages": trace.line(report["stages"]),
    }
    if "valid prediction" in report:
        figures = judged(report["valid prediction"], report["valid last_frame"])
        lines["next frame, valid"] = compared(figures | {"prediction_to_last_frame": None})
    lines |= {name: report[name] for name in ("best", "stopped early") if name in report}
    return "\n".join(f"{name:<18}{line}" for name, line in lines.items())


def _mean(values: list[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return sum(known) / len(known) if known else None
