"""Sparsely updated rows of embeddings and readouts, with the optimiser state kept for them."""

from typing import Any

import numpy as np

from .contract import Learned


def describe(optimiser: str) -> dict[str, Any]:
    """Returns the optimiser as an entry of a part's facts, unless it is the default."""
    return {} if optimiser == "sgd" else {"optimiser": optimiser}


def table(rows: int, width: int) -> np.ndarray:
    """Returns zero rows, float32, aligned to a cache line."""
    from cpu.runtime import memory

    made = memory.empty((rows, width), np.float32)
    made.fill(0)
    return made


def kept(rows: np.ndarray, optimiser: str, biases: bool = False) -> Learned:
    """Returns rows (R, D) with zero biases and squares, as the optimiser needs them, on the host."""
    from cpu.runtime import memory

    each, one = optimiser == "adagrad", np.zeros(len(rows), rows.dtype)
    squares = None if optimiser == "sgd" else memory.zeros(rows.shape if each else rows.shape[:1], rows.dtype)
    return Learned(rows, one if biases else None, squares, one.copy() if each and biases else None)


def numbers(rows: int, width: int, optimiser: str = "sgd", biases: bool = False, **facts: Any) -> int:
    """Returns how many numbers `kept` holds, including the rows."""
    each = {"sgd": 0, "row-adagrad": 1, "adagrad": width + biases}.get(optimiser, 0)
    return rows * (width + biases + each)


def mirrored(learned: Learned, device: Any) -> Learned:
    """Returns the arrays on a device: the same arrays if it shares the host's memory."""
    return Learned(*(None if array is None else device.from_host(array) for array in learned))


def pairs(host: Learned, there: Learned) -> list[tuple[np.ndarray, Any]]:
    """Returns pairs of each host array and its device counterpart, see hybrid/backend.py."""
    return [pair for pair in zip(host, there, strict=True) if pair[0] is not None]


def beside(learned: Learned) -> dict[str, np.ndarray]:
    """Returns biases and optimiser state by name, without the rows."""
    arrays = learned._asdict()
    del arrays["rows"]
    return {name: array for name, array in arrays.items() if array is not None}
