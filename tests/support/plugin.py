"""Distributions made in a temporary folder, which offer a kind by an entry point as an installed one does."""

import importlib
import os
import sys
from pathlib import Path

TOYS = Path(__file__).with_name("toys")


def distribution(folder: Path, name: str, group: str, source: str | None = None) -> None:
    """NAME 1.0, whose module, `source` or tests/support/toys/NAME.py, is offered under its own name in a group."""
    (folder / f"{name}.py").write_text((TOYS / f"{name}.py").read_text() if source is None else source)
    facts = folder / f"{name}-1.0.dist-info"
    facts.mkdir()
    (facts / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n")
    (facts / "entry_points.txt").write_text(f"[{group}]\n{name} = {name}\n")


def offered(monkeypatch, folder: Path, name: str, group: str, source: str | None = None) -> None:
    """The same, put on sys.path."""
    distribution(folder, name, group, source)
    monkeypatch.syspath_prepend(str(folder))
    monkeypatch.delitem(sys.modules, name, raising=False)
    importlib.invalidate_caches()


def offered_to_children(monkeypatch, folder: Path, name: str, group: str) -> None:
    """The same for processes that are started from now on, and for theirs."""
    folder.mkdir()
    distribution(folder, name, group)
    paths = [str(folder), *filter(None, [os.environ.get("PYTHONPATH")])]
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(paths))
