"""Arrays in device memory: a pointer, a shape and a dtype, which kernels and other libraries read."""

import math
from typing import Any

import numpy as np
from numpy.typing import DTypeLike

Shape = int | tuple[int, ...]


class Held(list[Any]):
    """A thing to be freed in the order of a device's work; empty once freed.

    lent  True if shared with another library, whose work is not ordered with the device's queues
    """

    lent = False


class Guard:
    """Keeps a thing alive: when it is deleted, its device frees the thing. Closing the device empties `held`."""

    def __init__(self, held: Held):
        self.held = held


class Array:
    """A C-contiguous array in device memory: it can be sliced along its first axis and reshaped; it has no arithmetic.

    keep     an object that keeps the memory alive
    ordinal  the number of the device

    Other libraries read it through __cuda_array_interface__ (version 3), which does not synchronise: wait for the event of the
    work that writes it, or launch that work by `within` of gpu/runtime/queues.py.
    """

    def __init__(self, pointer: int, shape: Shape, dtype: DTypeLike, keep: Any, ordinal: int = 0):
        self.shape = (shape,) if isinstance(shape, int) else tuple(int(size) for size in shape)
        self.pointer, self.dtype, self.keep, self.ordinal = pointer, np.dtype(dtype), keep, ordinal
        self.ndim, self.size = len(self.shape), math.prod(self.shape)
        self.nbytes = self.size * self.dtype.itemsize

    def __len__(self) -> int:
        return self.shape[0]

    def __getitem__(self, rows: slice) -> "Array":
        """Returns a view of some rows; TypeError for anything but a slice, ValueError for one with a step."""
        if not isinstance(rows, slice):
            raise TypeError(f"a device array is cut by a slice of rows, found {rows!r}")
        first, last, step = rows.indices(len(self))
        if step != 1:
            raise ValueError(f"a device array is cut without steps, found {rows}")
        rest = self.shape[1:]
        pointer = self.pointer + first * math.prod(rest) * self.dtype.itemsize
        return Array(pointer, (max(last - first, 0), *rest), self.dtype, self.keep, self.ordinal)

    def reshape(self, *shape: int) -> "Array":
        """Returns the same memory in another shape; one size may be -1."""
        known = -math.prod(shape)
        whole = tuple(self.size // known if size < 0 else size for size in shape)
        if math.prod(whole) != self.size:
            raise ValueError(f"an array of shape {self.shape} cannot take the shape {shape}")
        return Array(self.pointer, whole, self.dtype, self.keep, self.ordinal)

    @property
    def __cuda_array_interface__(self) -> dict[str, Any]:
        if isinstance(self.keep, Guard):
            self.keep.held.lent = True
        return {
            "shape": self.shape,
            "typestr": self.dtype.str,
            "data": (self.pointer, False),
            "strides": None,
            "version": 3,
        }


def adopt(foreign: Any, ordinal: int = 0) -> Array:
    """Returns a view of another library's memory on device number `ordinal`, which is kept alive.

    foreign  has __cuda_array_interface__, as arrays of PyTorch, CuPy and Numba; its own streams are not awaited

    Raises TypeError for an object without it, ValueError for one that is not C-contiguous.
    """
    facts = getattr(foreign, "__cuda_array_interface__", None)  # PyTorch makes it anew at each access
    if facts is None:
        raise TypeError(f"expected an array on a CUDA device, number {ordinal}, found {type(foreign).__name__}")
    array, strides = Array(facts["data"][0], facts["shape"], facts["typestr"], foreign, ordinal), facts.get("strides")
    contiguous = tuple(array.dtype.itemsize * math.prod(array.shape[axis + 1 :]) for axis in range(array.ndim))
    if strides is not None and array.size and tuple(strides) != contiguous:
        raise ValueError(f"expected a C-contiguous array, found strides {tuple(strides)} for shape {array.shape}")
    return array
