"""Rows that learn where they are visited, of an embedding or a readout: by which rule, and what is kept for each of them."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from .contract import Learned


def describe(optimiser: str) -> dict[str, Any]:
    """The argument of a part's facts, where it is not the default."""
    return {} if optimiser == "sgd" else {"optimiser": optimiser}


def table(rows: int, width: int) -> np.ndarray:
    """Rows of zeros, float32, which begin on a cache line."""
    from cpu.runtime import memory

    return memory.touched_zeros((rows, width), np.float32)


def readout_named(options: Mapping[str, Any]) -> dict[str, Any]:
    """The arguments of a readout from options of the command line: how its rows move, and whether they have biases."""
    optimiser = options.get("readout_optimiser")
    return ({"optimiser": optimiser} if optimiser else {}) | ({"biases": True} if options.get("biases") else {})


def kept(rows: np.ndarray, optimiser: str, biases: bool = False) -> Learned:
    """Rows (R, D) with biases and squares of 0, as far as the optimiser needs them, on the host."""
    from cpu.runtime import memory

    each, one = optimiser == "adagrad", np.zeros(len(rows), rows.dtype)
    squares = None if optimiser == "sgd" else memory.zeros(rows.shape if each else rows.shape[:1], rows.dtype)
    return Learned(rows, one if biases else None, squares, one.copy() if each and biases else None)


def numbers(rows: int, width: int, optimiser: str = "sgd", biases: bool = False, **facts: Any) -> int:
    """How many numbers `kept` has, with the rows."""
    each = {"sgd": 0, "row-adagrad": 1, "adagrad": width + biases}.get(optimiser, 0)
    return rows * (width + biases + each)


def first(learned: Learned, count: int) -> Learned:
    """What belongs to the first rows: views."""
    return Learned(*(None if array is None else array[:count] for array in learned))


def mirrored(learned: Learned, device: Any) -> Learned:
    """The same on a device: the same arrays where it shares the host's memory."""
    return Learned(*(None if array is None else device.from_host(array) for array in learned))


def pairs(host: Learned, there: Learned) -> list[tuple[np.ndarray, Any]]:
    """Every array of the host and its counterpart on the device, see hybrid/backend.py."""
    return [pair for pair in zip(host, there, strict=True) if pair[0] is not None]


def beside(learned: Learned) -> dict[str, np.ndarray]:
    """What is kept beside the rows, by name."""
    arrays = learned._asdict()
    del arrays["rows"]
    return {name: array for name, array in arrays.items() if array is not None}
