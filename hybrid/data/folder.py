"""Where public data lie on this machine."""

import os
import sys
from pathlib import Path


def data_folder(named: str | None = None) -> Path:
    """The folder of the data: the one named; else HYBRID_DATA; else one in the user's cache, as the system has it.

    That is ~/.cache/hybrid-engine/data, below XDG_CACHE_HOME where it is set; ~/Library/Caches on a Mac; LOCALAPPDATA on
    Windows.
    """
    chosen = named or os.environ.get("HYBRID_DATA")
    return Path(os.path.abspath(chosen)) if chosen else caches() / "hybrid-engine" / "data"


def caches() -> Path:
    """The folder of what this user's programs keep, as the system has it."""
    if sys.platform == "win32":
        return Path(os.environ.get("LOCALAPPDATA") or Path.home() / "AppData" / "Local")
    if sys.platform == "darwin":
        return Path.home() / "Library" / "Caches"
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
