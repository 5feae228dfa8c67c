"""What the options of a command name: clips and a configuration."""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from .. import console
from ..feeds.video.clip import Clip, Shape
from ..feeds.video.open import kept, open_clips
from ..storage import files
from ..train import store
from . import presets
from .config import Config

VIDEO_HELP = (
    'a file that FFmpeg reads, a directory of images or of videos, a zip of images, "synthetic"'
    ' or "synthetic:SEED": moving bodies over a moving background, with boxes'
)
LABELS_HELP = (
    "boxes for a video file, a line x,y,w,h a frame (default: the file beside it that ends in .txt or .csv; directories"
    " and zips hold their own)"
)
(CONFIG,) = store.FILES["pvm"]


def clips(video: str, shape: Shape, labels: str | None = None) -> Sequence[Clip]:
    """Those of --video; with --labels the one of a video file with the boxes of another file than the one beside it.

    Raises ValueError or OSError, see `open_clips`.
    """
    if labels is None:
        return open_clips(video, shape)
    from ..feeds.video.clips.video_file import Video

    if not Path(video).is_file() or Path(video).suffix.lower() == ".zip":
        raise ValueError(
            f"--labels: found {labels} with --video {video}, expected a video file; a directory or a zip holds its own"
            " labels.txt"
        )
    return kept([Video(Path(video), shape, labels=Path(labels))])


def labelled(found: Sequence[Clip]) -> bool:
    """Whether any of the clips says where its target is."""
    return any(clip[0].box is not None for clip in found)


def configured(options: Mapping[str, Any]) -> Config:
    """The configuration that --config names, with what --set says; notes on an original's file go to stderr."""
    config, notes = presets.load(options["config"])
    for note in notes:
        console.note(f"{options['config']}: {note}")
    fields = json.loads(config.to_json())
    for setting in options["set"] or ():
        name, _, text = setting.partition("=")
        try:
            value = json.loads(text)
        except json.JSONDecodeError:
            value = text  # a name, which JSON would quote
        inside = fields["readout"] if name.startswith("readout.") else fields
        if inside is None:
            raise ValueError(f"--set {setting}: found a configuration without readouts, expected one with")
        inside[name.removeprefix("readout.")] = value
    if any(setting.startswith("schedule=") for setting in options["set"] or ()):  # meant as it is said
        return Config.from_fields(fields | {"steps": None})
    return Config.from_fields(fields).stretched(options["steps"])


def read_config(folder: Path) -> Config:
    """The configuration of a run."""
    path = folder / CONFIG
    with files.named(path):
        return Config.from_fields(files.read(path))
