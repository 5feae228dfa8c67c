"""Configurations by name, from files, and from the originals' files."""

from __future__ import annotations

import difflib
import json
from contextlib import AbstractContextManager, nullcontext
from importlib import resources
from importlib.resources.abc import Traversable
from pathlib import Path

from ..storage import files
from . import originals
from .config import Config


def names() -> list[str]:
    """Returns the names of the configurations in the package."""
    return sorted(Path(one.name).stem for one in _folder().iterdir() if one.name.endswith(".json"))


def load(source: str | Path) -> tuple[Config, list[str]]:
    """Returns a configuration, and notes on ignored or missing options of an original's file; no notes for ours.

    source  one of `names()`, or a path to a .json or .toml, ours or an original's

    Raises ValueError, naming the file, for an invalid configuration, and FileNotFoundError.
    """
    if str(source) in names():
        return Config.from_fields(json.loads((_folder() / f"{source}.json").read_text("utf-8"))), []
    path = Path(source)
    if path.suffix not in (".json", ".toml"):
        near = difflib.get_close_matches(str(path), names(), 1)
        hint = f"; did you mean {near[0]}?" if near else ""
        raise ValueError(
            f"configuration: found {str(path)!r}, expected a file .json or .toml, or one of {', '.join(names())}{hint}"
        )
    fields = files.read(path)
    with named(source):
        if not isinstance(fields, dict):
            raise ValueError(f"found a {type(fields).__name__}, expected names with values")
        if originals.recognised(fields):
            return originals.read(fields, path.stem)
        return Config.from_fields({"name": path.stem, **fields}), []


def named(source: str | Path) -> AbstractContextManager[None]:
    """Returns a context in which errors name the file, if `source` is one."""
    return nullcontext() if str(source) in names() else files.named(source)


def _folder() -> Traversable:
    return resources.files(__package__) / "configs"
