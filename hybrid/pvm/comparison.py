"""Two runs side by side: both see the same video, frozen; a table and a picture of what each makes of it."""

import json
from argparse import Namespace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from ..storage import files
from ..train import store
from . import panel
from .evaluate import evaluated
from .sizes import parameters
from .source import read_config

PICTURE = "compare.png"
# Options that change nothing that is learned, and those that the configuration repeats.
APART = {
    *("kind", "steps", "every", "save_every", "patience", "tensorboard", "live", "device", "threads"),
    *("config", "set"),
}
LONGEST = 40  # letters of a setting's value in the table


class Side(NamedTuple):
    """One of the two runs."""

    name: str  # A or B
    figures: dict[str, Any]  # of `hybrid eval`, and its sizes
    settings: dict[str, Any]  # options and configuration, by name
    frame: np.ndarray  # the last one
    prediction: np.ndarray  # of that frame
    aspect: float


def compare(given: Namespace) -> dict[str, Any]:
    """Do `hybrid pvm compare A B`: write the picture, return a report."""
    folders = [Path(given.a), Path(given.b)]
    options = [store.options_of(folder) for folder in folders]
    video = given.video or _same_video(options)
    own = folders[0] / PICTURE
    path = files.check(Path(given.out or own).with_suffix(".png"), given.overwrite, own=own, inputs=[video])
    sides = [_side(name, folder, vars(given)) for name, folder in zip("AB", folders, strict=True)]
    draw(path, sides)
    report = {
        "video": video,
        "runs": {side.name: side.figures for side in sides},
        "settings": differing([side.settings for side in sides]),
        "picture": str(path),
    }
    return report | {"text": text(report)}


def _same_video(options: list[dict[str, Any]]) -> str:
    """What both were trained on."""
    a, b = (one.get("video") for one in options)
    if a != b:
        raise ValueError(f"--video: found none, and A was trained on {a}, B on {b}; name one for both")
    return str(a)


def _side(name: str, folder: Path, given: dict[str, Any]) -> Side:
    """What a run makes of the video."""
    seen = evaluated(folder, given)
    watcher, config = seen.watcher, read_config(folder)  # what is shown may be without its readouts
    units, readouts = parameters(config, watcher.model.wiring)
    own = {"configuration": config.name, "parameters": units, "readout_parameters": readouts}
    if watcher.predicted is None or watcher.before is None:
        raise ValueError(f"{folder}: too few frames to compare a prediction; expected at least 2 of one clip")
    learned = {option: value for option, value in seen.options.items() if option not in APART}
    settings = learned | _flat(json.loads(config.to_json()))
    return Side(name, seen.figures | own, settings, watcher.before, watcher.predicted, seen.aspect)


def _flat(fields: dict[str, Any]) -> dict[str, Any]:
    """Fields by name, those of the readout as readout.NAME."""
    inner = fields.pop("readout")
    return fields | ({"readout": None} if inner is None else {f"readout.{name}": one for name, one in inner.items()})


def differing(settings: list[dict[str, Any]]) -> dict[str, list[Any]]:
    """The settings in which two runs differ, [A's, B's] by name; None for one that a run does not have."""
    names = dict.fromkeys(name for one in settings for name in one)
    pairs = {name: [one.get(name) for one in settings] for name in names if name != "name"}
    return {name: pair for name, pair in pairs.items() if pair[0] != pair[1]}


def text(report: dict[str, Any]) -> str:
    """A report as a table for a person."""
    figures = list(report["runs"].values())
    lines = [("", "A", "B"), ("run", *(one["run"] for one in figures))]
    lines.append(("configuration", *(one["configuration"] for one in figures)))
    for name, key in (("parameters", "parameters"), ("of readouts", "readout_parameters"), ("steps", "steps_learned")):
        lines.append((name, *(f"{one[key]:,}" for one in figures)))
    named = {
        "next frame, error": "prediction_error",
        "repeating the last": "last_frame_error",
        "ratio (less is better)": "prediction_to_last_frame",
    }
    for name, key in named.items():
        lines.append((name, *("-" if one[key] is None else f"{one[key]:.4f}" for one in figures)))
    for layer in range(max(len(one["error"]) for one in figures)):
        errors = (f"{one['error'][layer]:.4f}" if layer < len(one["error"]) else "-" for one in figures)
        lines.append((f"error, layer {layer}", *errors))
    trackers = [(one["tracking"] or {"trackers": {}})["trackers"].get("pvm") for one in figures]
    if any(trackers):
        lines.append(
            ("tracking, success", *(f"{one['success']:.3f}" if one and one["success"] else "-" for one in trackers))
        )
    lines += [(f"{name} *", *map(_short, pair)) for name, pair in report["settings"].items()]
    wide = max(len(a) for _, a, _ in lines) + 2
    said = "\n".join(f"{name:<24}{a:<{wide}}{b}".rstrip() for name, a, b in lines)
    return f"{said}\n\n* settings that differ; both saw {report['video']}, frozen -> {report['picture']}"


def _short(value: Any) -> str:
    shown = value if isinstance(value, str) else json.dumps(value)
    return shown if len(shown) <= LONGEST else shown[: LONGEST - 3] + "..."


def draw(path: Path, sides: list[Side]) -> None:
    """Write a picture: the last frame, what each side predicted of it, and by how much it was off."""
    views = {"the last frame": panel.View(panel.rgb(sides[0].frame))}
    for side in sides:
        off = np.abs(side.prediction - side.frame).mean(axis=-1)
        views[f"{side.name} had predicted"] = panel.View(panel.rgb(side.prediction))
        views[f"{side.name} is off by {off.mean():.4f}"] = panel.coloured(off, panel.Scale(0, panel.ERROR, "inferno"))
    panel.save(path, panel.side_by_side(views, aspect=sides[0].aspect))
