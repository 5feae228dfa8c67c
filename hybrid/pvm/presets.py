"""Configurations by name, by file, by the originals' files."""

from __future__ import annotations

import difflib
import json
from collections.abc import Mapping
from contextlib import AbstractContextManager, nullcontext
from importlib import resources
from importlib.resources.abc import Traversable
from pathlib import Path
from typing import Any

from ..storage import files
from . import originals
from .config import Config


def names() -> list[str]:
    """The configurations that come with the package."""
    return sorted(Path(one.name).stem for one in _folder().iterdir() if one.name.endswith(".json"))


def load(source: str | Path | Mapping[str, Any], *, wiring: str | None = None) -> tuple[Config, list[str]]:
    """A configuration, and notes on what was ignored or missing in an original's file; no notes for ours.

    source  one of `names()`, a path to a .json or .toml, ours or an original's, or the parsed content of one
    wiring  for an original's file: the rule, see `originals.config.read`

    Raises ValueError, naming the file, for one that is no configuration, and FileNotFoundError.
    """
    if isinstance(source, Mapping):
        name, fields = "custom", source
    elif str(source) in names():
        name, fields = str(source), json.loads((_folder() / f"{source}.json").read_text("utf-8"))
    else:
        name, fields = Path(source).stem, _file(Path(source))
    with named(source):
        if originals.recognised(fields):
            return originals.read(fields, name, wiring=wiring)
        config = Config.from_fields({"name": name, **fields})
    if wiring not in (None, config.wiring):
        raise ValueError(f"wiring: found {wiring!r}, expected {config.wiring!r}, which {name} says, or None")
    return config, []


def named(source: str | Path | Mapping[str, Any]) -> AbstractContextManager[None]:
    """A context in which what is refused is refused by the name of the file, where `source` is one."""
    own = isinstance(source, Mapping) or str(source) in names()
    return nullcontext() if own else files.named(source)


def _folder() -> Traversable:
    return resources.files(__package__) / "configs"


def _file(path: Path) -> Mapping[str, Any]:
    """The content of a file; ValueError, naming it, where it cannot be parsed."""
    if path.suffix not in (".json", ".toml"):
        near = difflib.get_close_matches(str(path), names(), 1)
        hint = f"; did you mean {near[0]}?" if near else ""
        raise ValueError(
            f"configuration: found {str(path)!r}, expected a file .json or .toml, or one of {', '.join(names())}{hint}"
        )
    fields = files.read(path)
    if not isinstance(fields, dict):
        raise ValueError(f"{path}: found a {type(fields).__name__}, expected names with values")
    return fields
