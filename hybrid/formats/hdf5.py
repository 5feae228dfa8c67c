"""Nearest-neighbour data of ann-benchmarks: train, test, neighbors and distances in HDF5."""

from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from .. import check
from ..storage import files

KINDS = {"train": "f", "test": "f", "neighbors": "iu", "distances": "f"}  # datasets, and their dtype kinds
PACKED = 100  # maximum expansion of compressed data; real vectors hardly compress


class Neighbours(NamedTuple):
    """N vectors to search, Q queries, and the K nearest neighbours of each.

    train      (N, D) float32
    test       (Q, D) float32
    neighbors  (Q, K) int32, rows of train, the nearest first
    distances  (Q, K) float32
    distance   the metric: "angular", "euclidean", ...
    """

    train: np.ndarray
    test: np.ndarray
    neighbors: np.ndarray
    distances: np.ndarray
    distance: str


def load(path: str | Path) -> Neighbours:
    """Reads a file of ann-benchmarks.

    Raises OSError for an unreadable file. Raises ValueError for a missing or malformed dataset, one that is external or claims
    more than the file can hold, and if h5py is missing; IndexError for neighbours out of range.
    """
    with _opened(path, "r") as file:
        try:
            train, test, neighbors, distances = (_part(file, name) for name in KINDS)
            distance = file.attrs.get("distance", "")
        except Exception as error:  # ours, or h5py's various types for damaged data
            raise ValueError(f"{path}: {error}") from None
    distance = distance.decode("utf-8", "replace") if isinstance(distance, bytes) else str(distance)
    if train.shape[1] != test.shape[1] or len(neighbors) != len(test) or neighbors.shape != distances.shape:
        shapes = ", ".join(str(part.shape) for part in (train, test, neighbors, distances))
        raise ValueError(f"{path}: {', '.join(KINDS)}: found {shapes}; expected (N, D), (Q, D), (Q, K), (Q, K)")
    with files.named(path):
        return Neighbours(train, test, check.indices("neighbors", neighbors, len(train)), distances, distance)


def save(path: str | Path, neighbours: Neighbours) -> None:
    """Writes a file that ann-benchmarks and `load` read. It is written atomically; on any error the old file stays.

    Raises ValueError for inconsistent arrays, and if h5py is missing; IndexError for neighbours out of range; OSError for a
    file that cannot be written.
    """
    n, d = check.array("train", neighbours.train, (None, None), np.float32).shape
    near = check.indices("neighbors", neighbours.neighbors, n)
    if near.ndim != 2:
        raise ValueError(f"neighbors: found {near.dtype} {near.shape}, expected whole numbers (Q, K)")
    q, k = near.shape
    kept = {
        "train": neighbours.train,
        "test": check.array("test", neighbours.test, (q, d), np.float32),
        "neighbors": near,
        "distances": check.array("distances", neighbours.distances, (q, k), np.float32),
    }
    path = Path(path)
    part = files.part(path)
    try:
        with _opened(part, "x") as file:
            file.attrs["type"], file.attrs["distance"] = "dense", neighbours.distance
            file.attrs["dimension"], file.attrs["point_type"] = d, "float"
            for name, values in kept.items():
                file[name] = values
        files.settle_file(part)
        files.publish(part, path)
    finally:
        part.unlink(missing_ok=True)


def _opened(path: str | Path, mode: str) -> Any:
    try:
        import h5py
    except ImportError:
        raise ValueError(f"{path}: HDF5 is read and written with h5py, which is missing; pip install h5py") from None
    if mode == "r":
        open(path, "rb").close()  # raises the system's own error
    try:
        return h5py.File(path, mode)
    except OSError as error:
        if mode != "r":
            raise OSError(f"{path}: {error}") from None
        raise ValueError(f"{path}: no HDF5 file ({error}); expected one of ann-benchmarks") from None


def _part(file: Any, name: str) -> np.ndarray:
    """Returns a two-dimensional dataset; ValueError for anything else, or one that is not in this file."""
    import h5py

    part = file[name] if isinstance(file.get(name, getlink=True), h5py.HardLink) else None
    if not isinstance(part, h5py.Dataset) or part.is_virtual or part.external:
        there = ", ".join(map(repr, sorted(file))) or "nothing"
        raise ValueError(f"no {name!r} in it, found {there}; expected {', '.join(KINDS)}")
    if part.ndim != 2 or part.dtype.kind not in KINDS[name] or not part.size:
        wanted = "numbers" if KINDS[name] == "f" else "whole numbers"
        raise ValueError(f"{name}: found {part.dtype} {part.shape}, expected {wanted} of two axes")
    held = part.id.get_storage_size() * (PACKED if part.id.get_create_plist().get_nfilters() else 1)
    if part.nbytes > held:
        raise ValueError(f"{name}: {part.shape} claims {part.nbytes:,} bytes, of which the file holds {held:,}")
    return np.asarray(part[:], np.float32 if KINDS[name] == "f" else None)
