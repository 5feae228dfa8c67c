"""Films of a trained Predictive Vision Model: of a video, and of its dreams."""

import math
from argparse import Namespace
from collections.abc import Iterator, Sequence
from itertools import chain, islice
from pathlib import Path
from typing import Any

import numpy as np

from .. import console
from ..feeds.video.clip import Frame, aspect_of
from ..feeds.video.film import Film
from ..feeds.video.open import open_clips
from ..storage import files
from . import panel
from .evaluate import Watcher, box_in, frames_of, opened, shown_clips
from .fields import unit_of
from .figures import compared, floats
from .model import PVM, StepResult
from .panel import Colour

MOST = 32  # rows and columns of units in one picture
WIDE = 1400  # maximum pixels of the longer side of an enlarged picture
BETWEEN = 0.15  # gap between two fields: darker than a weight of 0, which is 0.5

FIELDS = "fields.png"  # picture file in the folder of the run


def fields(given: Namespace) -> dict[str, Any]:
    """Writes the picture of `hybrid pvm fields`; returns a report."""
    folder = Path(given.run)
    path = panel.path_of(given.out or folder / FIELDS)
    files.check(path, given.overwrite, own=folder / FIELDS)
    model, _ = opened(folder, vars(given))
    wiring, layer = model.wiring, given.layer
    first = unit_of(wiring, layer, 0)
    fits = (wiring.layer == layer) & (wiring.row < MOST) & (wiring.column < MOST)
    units = np.flatnonzero(fits).tolist() or [first]
    image, scale = montage(model, units)
    panel.save(path, panel.enlarged((255 * image + 0.5).astype(np.uint8), WIDE))
    text = f"layer {layer}, {len(units):,} units, black and white at -{scale:.3g} and {scale:.3g} -> {path}"
    return {"picture": str(path), "layer": layer, "units": len(units), "scale": scale, "text": text}


def montage(model: PVM, units: list[int]) -> tuple[np.ndarray, float]:
    """Returns the receptive fields of units at their grid positions, as a nearly square block of fields each.

    Returns the image, (rows, columns, 3) in 0..1 with 0.5 for a weight of 0, and the weight shown as 1, which is the 99th
    percentile.
    """
    wiring, projection = model.wiring, model.projection()
    found = [projection.field(unit).weights for unit in units]
    scale = float(np.percentile(np.abs(np.concatenate([one.ravel() for one in found])), 99)) or 1.0
    numbers, high, wide = (max(one.shape[axis] for one in found) for axis in range(3))
    across = math.ceil(math.sqrt(numbers))
    down = -(-numbers // across)
    block = down * (high + 1) + 2, across * (wide + 1) + 2
    rows, columns = (sorted(set(place[units].tolist())) for place in (wiring.row, wiring.column))
    image = np.full((len(rows) * block[0], len(columns) * block[1], 3), BETWEEN)
    for unit, weights in zip(units, found, strict=True):
        top, left = rows.index(wiring.row[unit]) * block[0] + 1, columns.index(wiring.column[unit]) * block[1] + 1
        shown = np.clip(0.5 + weights / (2 * scale), 0, 1)
        shown = shown[..., :3] if shown.shape[3] >= 3 else shown[..., :1]
        for number, field in enumerate(shown):
            y, x = top + number // across * (high + 1), left + number % across * (wide + 1)
            image[y : y + field.shape[0], x : x + field.shape[1]] = field
    return image, scale


WATCHED, DREAMT = "watch.mp4", "dream.mp4"  # film files in the folder of the run
AWAKE = 50  # maximum frames of the video before a dream


def watch(given: Namespace) -> dict[str, Any]:
    """Writes the film of `hybrid pvm watch`; returns a report."""
    folder = Path(given.run)
    model, options = opened(folder, vars(given))
    found = shown_clips(vars(given), options, model)
    watcher, video = Watcher(model), given.video or options["video"]
    path = _path(folder, given, WATCHED, video)
    aspect, title = aspect_of(found[0]), _title(model, video)
    with Film(path, found[0].rate) as film, console.bar(given.steps, "film", "frames") as bar:
        for clip in found:
            watcher.cut()
            for number, frame in enumerate(islice(frames_of(clip), given.steps - watcher.frames)):
                film.write(_looked(watcher, frame, aspect, f"{title}, frame {number:,}"))
                bar.update()
    figures = watcher.figures()
    text = f"{figures['frames']:,} frames -> {path}\nnext frame: {compared(figures)}"
    return figures | {"film": str(path), "text": text}


def _title(model: PVM, video: str) -> str:
    return f"{model.config.name}, {model.tick:,} steps of learning, {Path(video).name}"


def _looked(watcher: Watcher, frame: Frame, aspect: float, title: str) -> np.ndarray:
    """Returns a picture of the film: frame, prediction, difference, hidden maps, heatmap, and the boxes."""
    model = watcher.model
    seen = watcher.see(frame.image, frame.box)
    real, pair = floats(frame.image), watcher.pair
    pictures, off = (real, pair.prediction if pair else real * 0), pair and (pair.error, pair.last_frame)
    views = panel.views(model.config, model.wiring, pictures, seen.hidden, seen.heatmap, off)
    boxes, note = _boxes(frame, seen)
    views |= {name: views[name]._replace(boxes=boxes) for name in ("frame", "heatmap") if name in views}
    views["frame"] = views["frame"]._replace(note=note)
    return panel.side_by_side(views, aspect=aspect, title=title)


def _boxes(frame: Frame, seen: StepResult) -> tuple[tuple[tuple[np.ndarray, Colour], ...], str]:
    """Returns the boxes in a frame, and a note on their colours, absent boxes included."""
    found = [] if frame.box is None else [("green: label", frame.box, panel.LABEL)]
    if seen.heatmaps:
        found.append(("blue: heatmap", box_in(seen, frame.image.shape), panel.FOUND))
    boxes = tuple((panel.shares(box, frame.image.shape), colour) for _, box, colour in found)
    return boxes, ", ".join(name if box[2] > 0 else f"{name} (absent)" for name, box, _ in found)


def dream(given: Namespace) -> dict[str, Any]:
    """Writes the film of `hybrid pvm dream`; returns a report."""
    folder = Path(given.run)
    model, options = opened(folder, vars(given))
    source = given.video or options["video"]
    path = _path(folder, given, DREAMT, source)
    found = open_clips(source, model.config.frame)
    awake = list(islice(chain.from_iterable(map(frames_of, found)), AWAKE))
    title = _title(model, source)
    with Film(path, found[0].rate) as film:
        frames = console.bar(len(awake) + given.steps, "film", "frames", items=_dreamt(model, awake, given.steps))
        for number, views in enumerate(frames):
            film.write(panel.side_by_side(views, aspect=aspect_of(found[0]), title=f"{title}, frame {number:,}"))
    text = f"{len(awake):,} frames of {source}, then {given.steps:,} of dream -> {path}"
    return {"film": str(path), "frames": len(awake) + given.steps, "text": text}


def _dreamt(model: PVM, awake: Sequence[Frame], count: int) -> Iterator[dict[str, panel.View]]:
    """Yields the pictures of each frame: first of the video, then of the dream, which feeds the model its predictions."""
    for number in range(len(awake) + count):
        asleep = number >= len(awake)
        shown = model.prediction()[0] if asleep else floats(awake[number].image)
        seen = model.step(shown)
        assert seen.prediction is not None
        pictures = {f"seen: {'dream' if asleep else 'video'}": shown, "predicted next": seen.prediction}
        yield {name: panel.View(panel.rgb(picture)) for name, picture in pictures.items()}


def _path(folder: Path, given: Namespace, name: str, *inputs: str | None) -> Path:
    own = folder / name
    return files.check(given.out or own, given.overwrite, own=own, inputs=inputs)
