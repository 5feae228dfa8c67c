"""Films of a trained Predictive Vision Model: of a video, and of its dreams."""

from argparse import Namespace
from collections.abc import Iterator, Sequence
from itertools import chain, islice
from pathlib import Path
from typing import Any

import numpy as np

from ... import console
from ...feeds.video.clip import Frame, aspect_of
from ...feeds.video.film import Film
from ...storage import output
from ..model import PVM
from ..result import StepResult
from ..source import clips
from . import panel, saturation
from .baseline import compared, floats
from .evaluate import Watcher, box_in, frames_of, opened, shown_clips
from .panel import Colour

WATCHED, DREAMT = "watch.mp4", "dream.mp4"  # where films go, in the folder of the run
AWAKE = 50  # frames of the video, at most, before a dream


def watch(given: Namespace) -> dict[str, Any]:
    """Write the film of `hybrid pvm watch`; returns a report."""
    folder = Path(given.run)
    model, options = opened(folder, vars(given))
    found = shown_clips(vars(given), options, model)
    watcher, video = Watcher(model), given.video or options["video"]
    path = _path(folder, given, WATCHED, video)
    aspect, title = aspect_of(found[0]), _title(model, video)
    with Film(path, found[0].rate, zoom=1) as film, _bar(None, given.steps) as bar:
        for clip in found:
            watcher.cut()
            for number, frame in enumerate(islice(frames_of(clip), given.steps - watcher.frames)):
                film.write(_looked(watcher, frame, aspect, f"{title}, frame {number:,}"))
                bar.update()
    figures = watcher.figures()
    return figures | {
        "film": str(path),
        "text": f"{figures['frames']:,} frames -> {path}\nnext frame: {compared(figures)}",
    }


def _title(model: PVM, video: str) -> str:
    """The part of a film's title that stays the same."""
    return f"{model.config.name}, {model.step_number:,} steps of learning, {Path(video).name}"


def _looked(watcher: Watcher, frame: Frame, aspect: float, title: str) -> np.ndarray:
    """A picture of the film: frame, prediction, difference, hidden maps, heatmap, and the boxes."""
    model = watcher.model
    seen = watcher.see(frame.image, frame.box)
    real = floats(frame.image)
    views = panel.views(
        model.wiring,
        real,
        real * 0 if watcher.predicted is None else watcher.predicted,
        seen.hidden,
        seen.heatmap,
        saturation.bounds(model.config),
        saturation.count_layers(watcher.recent, model.config),
    )
    notes = {"prediction": "none yet", "difference": "none yet"}
    if watcher.off:
        notes = {
            "prediction": f"mean |error| {watcher.off[0]:.4f}",
            "difference": f"repeating the last frame: {watcher.off[1]:.4f}",
        }
    views |= {name: views[name]._replace(note=note) for name, note in notes.items()}
    boxes, legend = _boxes(frame, seen)
    views |= {name: views[name]._replace(boxes=boxes) for name in ("frame", "heatmap") if name in views}
    return panel.side_by_side(views, aspect=aspect, title=title, legend=legend)


def _boxes(frame: Frame, seen: StepResult) -> tuple[tuple[tuple[np.ndarray, Colour], ...], list[tuple[Colour, str]]]:
    """The boxes in a frame, and a legend of their colours; absent boxes are in it too, so that a film's layout stays."""
    shape, boxes, legend = frame.image.shape, [], []
    if frame.box is not None:
        boxes.append((panel.shares(frame.box, shape), panel.LABEL))
        legend.append((panel.LABEL, "label" if frame.box[2] > 0 else "label: absent"))
    if seen.heatmaps:
        found = box_in(seen, shape)
        boxes.append((panel.shares(found, shape), panel.FOUND))
        legend.append((panel.FOUND, "tracker, from the heatmap" if found[2] > 0 else "tracker: absent"))
    return tuple(boxes), legend


def dream(given: Namespace) -> dict[str, Any]:
    """Write the film of `hybrid pvm dream`; returns a report."""
    folder = Path(given.run)
    model, options = opened(folder, vars(given))
    source = given.video or options["video"]
    path = _path(folder, given, DREAMT, source)
    found = clips(source, model.config.frame)
    awake = list(islice(chain.from_iterable(map(frames_of, found)), AWAKE))
    title = _title(model, source)
    with Film(path, found[0].rate, zoom=1) as film:
        for number, views in enumerate(_bar(_dreamt(model, awake, given.steps), len(awake) + given.steps)):
            film.write(panel.side_by_side(views, aspect=aspect_of(found[0]), title=f"{title}, frame {number:,}"))
    said = f"{len(awake):,} frames of {source}, then {given.steps:,} of dream -> {path}"
    return {"film": str(path), "frames": len(awake) + given.steps, "text": said}


def _dreamt(model: PVM, awake: Sequence[Frame], count: int) -> Iterator[dict[str, panel.View]]:
    """The pictures of each frame: first of the video, then of the dream, which shows the model what it predicted."""
    for number in range(len(awake) + count):
        asleep = number >= len(awake)
        shown = model.prediction()[0] if asleep else floats(awake[number].image)
        seen = model.step(shown)
        assert seen.prediction is not None
        pictures = {f"seen: {'dream' if asleep else 'video'}": shown, "predicted next": seen.prediction}
        yield {name: panel.View(panel.rgb(picture)) for name, picture in pictures.items()}


def _bar(frames: Any, total: int) -> Any:
    return console.bar(total, "film", "frames", items=frames)


def _path(folder: Path, given: Namespace, name: str, *inputs: str | None) -> Path:
    own = folder / name
    return output.check(given.out or own, given.overwrite, own=own, inputs=inputs)
