"""The problems of `python -m bench quality`, by name."""

import importlib
import os
from pathlib import Path
from typing import Any

from bench.quality.contender import Problem

FILES = {  # of each problem the module, with a function make_NAME(arguments): a Problem, or None where its data are not there
    "beauty": "items",
    "documentation": "language",
    "items": "items",
    "labels": "labels",
    "language": "language",
    "yeast": "labels",
}
OURS = ("", "bench", "cpu", "gpu", "hybrid")  # to miss a module of these is a mistake


def names() -> list[str]:
    """All of them."""
    return list(FILES)


def load(name: str, arguments: Any) -> Problem | None:
    """The problem of a file; None, which is said, where its data are missing, or a library of those that contend.

    It reads of the arguments threads and quick, and what the command line says is for it.
    """
    try:
        module = importlib.import_module(f"bench.quality.{FILES[name]}")
    except ModuleNotFoundError as missing:
        if (missing.name or "").split(".")[0] in OURS:
            raise
        print(f"{name} is not measured: {missing}; pip install 'hybrid-engine[bench]'", flush=True)
        return None
    problem: Problem | None = getattr(module, f"make_{name}")(arguments)
    return problem


def there(name: str) -> Path | None:
    """A file or folder of the data that are not ours to give away; None, which is said, where it is not there."""
    path = Path(os.environ.get("HYBRID_DATA", "data")) / name
    if path.exists():
        return path
    print(f"{path}: not there; HYBRID_DATA names the folder that holds {name}", flush=True)
    return None
