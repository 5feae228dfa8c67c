"""Arrays that begin on a cache line.

NumPy begins large arrays 16 bytes past one. Then every row of 128 numbers touches 9 lines instead of 8, every wide load
crosses from one line to the next, and two threads compete for a line that neighbouring rows share: a tree step takes twice
as long.
"""

import math

import numpy as np
from numpy.typing import DTypeLike

LINE = 64  # bytes


def empty(shape: tuple[int, ...], dtype: DTypeLike) -> np.ndarray:
    """An uninitialised array whose first byte begins a cache line."""
    return _begun(np.empty(_bytes(shape, dtype), np.uint8), shape, dtype)


def zeros(shape: tuple[int, ...], dtype: DTypeLike) -> np.ndarray:
    """The same, of zeros: memory is taken when a number is first written."""
    return _begun(np.zeros(_bytes(shape, dtype), np.uint8), shape, dtype)


def _bytes(shape: tuple[int, ...], dtype: DTypeLike) -> int:
    """With room to begin on a line."""
    return math.prod(shape) * np.dtype(dtype).itemsize + LINE


def _begun(raw: np.ndarray, shape: tuple[int, ...], dtype: DTypeLike) -> np.ndarray:
    size = raw.size - LINE
    start = -raw.ctypes.data % LINE
    return raw[start : start + size].view(dtype).reshape(shape)
