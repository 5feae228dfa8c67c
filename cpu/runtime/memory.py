"""Arrays aligned to cache lines; prefetch; bandwidth.

NumPy starts large arrays 16 bytes past a line. Then every row of 128 numbers spans 9 lines instead of 8, and every wide load
crosses lines. Two threads compete for the line between neighbouring rows. A tree step takes twice as long.
"""

import math
import time
from collections.abc import Sequence
from typing import Any

import numba
import numpy as np
from llvmlite import ir
from numba.core import cgutils, types
from numba.extending import intrinsic
from numpy.typing import DTypeLike

from cpu.runtime.compiled import Array, inlined, launched

LINE = 64  # bytes of a cache line on every supported machine; a wrong guess costs time, not correctness


def empty(shape: tuple[int, ...], dtype: DTypeLike) -> np.ndarray:
    """Returns an uninitialised array aligned to a cache line."""
    return _on_a_line(np.empty, shape, dtype)


def zeros(shape: tuple[int, ...], dtype: DTypeLike) -> np.ndarray:
    """Returns the same, zeroed: memory is committed when a number is first written."""
    return _on_a_line(np.zeros, shape, dtype)


def _on_a_line(make: Any, shape: tuple[int, ...], dtype: DTypeLike) -> np.ndarray:
    size = math.prod(shape) * np.dtype(dtype).itemsize
    raw: np.ndarray = make(size + LINE, np.uint8)
    start = -raw.ctypes.data % LINE
    return raw[start : start + size].view(dtype).reshape(shape)


@inlined()
def prefetch_row(table, row):
    """Prefetches all cache lines of table[row], C-contiguous in one or two dimensions; table None: does nothing."""
    if table is None:
        return
    if table.ndim == 1:
        _prefetch(table, (row,))
    else:
        for column in range(0, table.shape[1], LINE // table.itemsize):
            _prefetch(table, (row, column))


@intrinsic
def _prefetch(typingctx, table, place):
    """Prefetches table[place] for reading and writing."""

    def generate(context, builder, signature, arguments):
        array = context.make_array(signature.args[0])(context, builder, arguments[0])
        indices = [
            context.cast(builder, value, kind, types.intp)
            for value, kind in zip(cgutils.unpack_tuple(builder, arguments[1]), signature.args[1], strict=True)
        ]
        pointer = cgutils.get_item_pointer(context, builder, signature.args[0], array, indices)
        byte = ir.IntType(8).as_pointer()
        kind = ir.FunctionType(ir.VoidType(), [byte] + [ir.IntType(32)] * 3)
        hint = builder.module.declare_intrinsic("llvm.prefetch", (byte,), kind)
        read, keep, data = (ir.Constant(ir.IntType(32), value) for value in (0, 3, 1))
        builder.call(hint, [builder.bitcast(pointer, byte), read, keep, data])
        return context.get_dummy_value()

    return types.void(table, place), generate


def pass_over(arrays: Sequence[Array], step: float = 0) -> float:
    """Returns bytes per second of one `array += step` over these float arrays, one read and one write per number.

    Memory of one machine is not uniformly fast, so measure with the arrays that the work uses. A step of 0 leaves them
    unchanged.
    """
    start = time.perf_counter()
    for array in arrays:
        flat = array.reshape(-1)
        _read_modify_write(flat, numba.get_num_threads() * 8, flat.dtype.type(step))
    return 2 * sum(array.nbytes for array in arrays) / (time.perf_counter() - start)


def read_modify_write(megabytes: int = 1024, repeat: int = 5) -> list[float]:
    """Returns samples of the bandwidth of `array += 1`, in bytes per second, on the current number of Numba threads.

    Counts 8 bytes a float32: one read, one write. The array is larger than any cache; the first pass is not timed.
    """
    array = np.zeros(megabytes * 2**18, np.float32)
    return [pass_over([array], 1) for _ in range(repeat + 1)][1:]


@launched(parallel=True)
def _read_modify_write(array, chunks, step):
    size = array.size // chunks
    for chunk in numba.prange(chunks):
        part = array[chunk * size : (chunk + 1) * size]
        for i in range(part.size):
            part[i] += step
