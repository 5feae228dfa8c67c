"""Distributions made in a temporary folder, which offer a kind by an entry point as an installed one does."""

import importlib
import sys
from pathlib import Path


def offered(monkeypatch, folder: Path, name: str, group: str, source: str) -> None:
    """A distribution NAME 1.0, put on sys.path, whose module NAME is offered under its own name in a group."""
    (folder / f"{name}.py").write_text(source)
    facts = folder / f"{name}-1.0.dist-info"
    facts.mkdir()
    (facts / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n")
    (facts / "entry_points.txt").write_text(f"[{group}]\n{name} = {name}\n")
    monkeypatch.syspath_prepend(str(folder))
    monkeypatch.delitem(sys.modules, name, raising=False)
    importlib.invalidate_caches()
