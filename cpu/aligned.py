"""Arrays that begin on a cache line.

NumPy begins large arrays 16 bytes past one, so that every row of 128 numbers touches 9 lines in place of 8, every wide
load of it straddles two, and neighbouring rows share a line that two threads fight over: half the speed of a tree step.
"""

import math

import numpy as np

LINE = 64  # bytes


def empty(shape, dtype) -> np.ndarray:
    """An uninitialised array whose first byte begins a cache line."""
    size = math.prod(shape) * np.dtype(dtype).itemsize
    raw = np.empty(size + LINE, np.uint8)
    start = -raw.ctypes.data % LINE
    return raw[start : start + size].view(dtype).reshape(shape)
