"""Films of a trained Predictive Vision Model: what it makes of a video, and what it dreams."""

from collections.abc import Iterator
from itertools import islice
from pathlib import Path

import numpy as np

from .. import console
from ..feeds.frames import Frame
from ..film import Film
from . import panel
from .command import DREAMT, WATCHED
from .compare import compared, floats
from .evaluate import Watcher, box_in, changed, frames_of, opened, shown_clips
from .model import PVM
from .modes import Mode
from .source import clips


def watch(given) -> dict:
    """Write the film of `hybrid pvm watch`; returns a report."""
    folder = Path(given.run)
    model, options = opened(folder, vars(given))
    found = shown_clips(vars(given), options, model)
    model.frozen = not given.learn
    watcher, path = Watcher(model), _path(folder, given.out, WATCHED)
    with Film(path, found[0].rate, zoom=1) as film, _bar(None, given.frames) as bar:
        for clip in found:
            watcher.cut()
            for frame in islice(frames_of(clip), given.frames - watcher.frames):
                film.write(_looked(watcher, frame))
                bar.update()
    figures = watcher.figures()
    return figures | {
        "film": str(path),
        "text": f"{figures['frames']:,} frames -> {path}\nnext frame: {compared(figures)}",
    }


def _looked(watcher: Watcher, frame: Frame) -> np.ndarray:
    """A frame of the film: what the model makes of a frame, its box and the labelled one."""
    expected = watcher.expected
    seen = watcher.see(frame.image, frame.box)
    real = floats(frame.image)
    views = panel.views(
        watcher.model.wiring, real, real * 0 if expected is None else expected, seen.hidden, seen.heatmap
    )
    boxes = []
    if frame.box is not None:
        boxes.append((panel.shares(frame.box, real.shape), panel.LABEL))
    if seen.heatmaps:
        boxes.append((panel.shares(box_in(seen, real.shape), real.shape), panel.FOUND))
    return panel.side_by_side(views, {"frame": boxes, "heatmap": boxes})


def dream(given) -> dict:
    """Write the film of `hybrid pvm dream`; returns a report."""
    if given.mode == "freeze" and given.learn:
        raise ValueError("--mode freeze and --learn contradict each other; leave one out")
    folder = Path(given.run)
    model, options = opened(folder, vars(given))
    model.frozen = not given.learn
    mode = Mode("none" if given.mode == "freeze" else given.mode, given.seed)
    needs_video = mode.name not in ("dream", "gray", "noise")
    source = given.seed_video or options["video"]
    path = _path(folder, given.out, DREAMT)
    frames: Iterator[Frame] = iter(())
    rate = 25.0
    if given.seed_frames or needs_video:
        found = clips(source, model.config.frame, crop=bool(options["crop"]))
        frames, rate = _again(found), found[0].rate
    with Film(path, rate, zoom=1) as film:
        for views in _bar(_dreamt(model, mode, frames, given, needs_video), given.seed_frames + given.frames):
            film.write(panel.side_by_side(views))
    before = f"{given.seed_frames:,} frames of {source}, then " if given.seed_frames else ""
    said = f"{before}{given.frames:,} of {given.mode} -> {path}"
    return {"film": str(path), "frames": given.seed_frames + given.frames, "text": said}


def _dreamt(
    model: PVM, mode: Mode, frames: Iterator[Frame], given, needs_video: bool
) -> Iterator[dict[str, np.ndarray]]:
    """What there is to see, frame by frame: the model's eye open, then in the mode."""
    blank = np.zeros(model.config.frame, np.float32)
    awake = Mode("none")
    for number in range(given.seed_frames + given.frames):
        asleep = number >= given.seed_frames
        real = floats(next(frames).image) if needs_video or not asleep else blank
        shown = changed(model, mode if asleep else awake, real)
        seen = model.step(shown)
        assert seen.prediction is not None
        video = {"video": panel.rgb(real)} if needs_video else {}
        # the caption says what is on: a film of pixels has no other place for it
        yield video | {
            f"seen: {given.mode if asleep else 'video'}": panel.rgb(shown),
            "predicted next": panel.rgb(seen.prediction),
        }


def _again(found) -> Iterator[Frame]:
    """The frames of the clips, again and again."""
    while True:
        for clip in found:
            yield from frames_of(clip)


def _bar(frames, total: int):
    return console.bar(total, "film", "frames", items=frames)


def _path(folder: Path, out: str | None, name: str) -> Path:
    return Path(out) if out else folder / name
