"""Distributions made in a temporary folder, which offer a kind by an entry point as an installed one does."""

import importlib
import shutil
import sys
from pathlib import Path

TOYS = Path(__file__).with_name("toys")


def distribution(folder: Path, name: str, group: str) -> None:
    """NAME 1.0, whose module is tests/support/toys/NAME.py, offered under its own name in a group."""
    shutil.copy(TOYS / f"{name}.py", folder)
    facts = folder / f"{name}-1.0.dist-info"
    facts.mkdir()
    (facts / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n")
    (facts / "entry_points.txt").write_text(f"[{group}]\n{name} = {name}\n")


def offered(monkeypatch, folder: Path, name: str, group: str) -> None:
    """The same, put on sys.path."""
    distribution(folder, name, group)
    monkeypatch.syspath_prepend(str(folder))
    monkeypatch.delitem(sys.modules, name, raising=False)
    importlib.invalidate_caches()
