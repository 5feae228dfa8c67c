"""Problems of `python -m bench quality`: each a file with make(arguments), a Problem, or None where its data are not there."""

import importlib
import os
import pkgutil
from pathlib import Path
from typing import Any

from bench.contender import Problem

OURS = ("", "bench", "cpu", "gpu", "hybrid")  # to miss a module of these is a mistake


def names() -> list[str]:
    """The files of this folder."""
    return sorted(found.name for found in pkgutil.iter_modules(__path__) if not found.name.startswith("_"))


def load(name: str, arguments: Any) -> Problem | None:
    """The problem of a file; None, which is said, where its data are missing, or a library of those that contend.

    It reads of the arguments threads and quick, and what the command line says is for it.
    """
    try:
        module = importlib.import_module(f"bench.problems.{name}")
    except ModuleNotFoundError as missing:
        if (missing.name or "").split(".")[0] in OURS:
            raise
        print(f"{name} is not measured: {missing}; pip install 'hybrid-engine[bench]'", flush=True)
        return None
    problem: Problem | None = module.make(arguments)
    return problem


def there(name: str) -> Path | None:
    """A file or folder of the data that are not ours to give away; None, which is said, where it is not there."""
    path = Path(os.environ.get("HYBRID_DATA", "data")) / name
    if path.exists():
        return path
    print(f"{path}: not there; HYBRID_DATA names the folder that holds {name}", flush=True)
    return None
