"""Clips and configuration from the options of a command."""

import dataclasses
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from .. import console
from ..feeds.video.clip import Clip
from ..storage import files
from ..train import store
from . import presets
from .config import Config

VIDEO_HELP = (
    'a file that FFmpeg reads, a directory of images or of videos, a zip of images, "synthetic"'
    ' or "synthetic:SEED": moving bodies over a moving background, with boxes'
)
(CONFIG,) = store.FILES["pvm"]


def labelled(found: Sequence[Clip]) -> bool:
    """True if any of the clips has labels."""
    return any(clip[0].box is not None for clip in found)


def configured(options: Mapping[str, Any]) -> Config:
    """Returns the configuration of --config, updated by --set; notes on an original's file go to stderr."""
    config, notes = updated(options)
    for note in notes:
        console.note(f"{options['config']}: {note}")
    if any(setting.startswith("schedule=") for setting in options["set"] or ()):  # an explicit schedule is not rescaled
        return dataclasses.replace(config, steps=None)
    return config.stretched(options["steps"])


def updated(options: Mapping[str, Any]) -> tuple[Config, list[str]]:
    """Returns the configuration of --config, updated by --set and not rescaled; and notes on an original's file."""
    config, notes = presets.load(options["config"])
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
    return Config.from_fields(fields), notes


def read_config(folder: Path) -> Config:
    """Returns the configuration of a run."""
    path = folder / CONFIG
    with files.named(path):
        return Config.from_fields(files.read(path))
