"""Arrays of every kind to save, and how to compare what came back."""

import json
from pathlib import Path

import numpy as np

FACTS = {"tick": 7, "loss": 0.1 + 0.2, "seed": 2**127, "names": ["ä", None, True], "nested": {"rate": 1e-300}}


def arrays(seed=0):
    rng = np.random.default_rng(seed)
    return {
        "odd": rng.integers(0, 255, 3, np.uint8),  # would leave what follows unaligned, were it not put last
        "table": rng.normal(size=(50, 8)).astype(np.float32),
        "exact": np.array([[np.pi, np.nan, -0.0, np.inf]]),
        "ids": np.arange(-3, 4, dtype=np.int32),
        "offsets": np.array([2**62], np.int64),
        "scalar": np.array(5, np.int16),
        "empty": np.empty((0, 8), np.float32),
        "flags": np.array([True, False]),
    }


def same(one, other):
    """The same names, dtypes, shapes and bytes."""
    return one.keys() == other.keys() and all(
        one[name].dtype == other[name].dtype
        and one[name].shape == other[name].shape
        and one[name].tobytes() == other[name].tobytes()
        for name in one
    )


def tensor_file(source: Path) -> Path:
    return source.parent / json.loads(source.read_text())["file"]


def content(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir()}
