"""A wheel holds all that the packages read when they run."""

import tomllib
from pathlib import Path

ROOT = Path(__file__).parents[1]


def test_kernels_are_shipped():
    """The .cu and .cuh files are compiled on the user's machine; setuptools packs only Python unless told."""
    told = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["setuptools"]["package-data"]
    data = [path for path in (ROOT / "gpu").rglob("*") if path.is_file() and path.suffix not in (".py", ".pyc")]
    assert data
    packed = {path for pattern in told["gpu"] for path in (ROOT / "gpu").glob(pattern)}
    assert set(data) <= packed
