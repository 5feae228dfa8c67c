"""Arrays that begin on a cache line.

NumPy begins large arrays 16 bytes past one. Then every row of 128 numbers touches 9 lines instead of 8, every wide load
crosses from one line to the next, and two threads compete for a line that neighbouring rows share: a tree step takes twice
as long.
"""

import math
import time
from collections.abc import Sequence
from pathlib import Path

import numba
import numpy as np
from llvmlite import ir
from numba.core import cgutils, types
from numba.extending import intrinsic
from numpy.typing import DTypeLike

from cpu.runtime.compiled import Array, inlined, launched

# Ask for a row of a table before it is needed: rows drawn at random from a large table wait for memory, not for work.

LINE_BYTES = 64  # bytes of a cache line on every machine this runs on; a wrong guess costs time, not correctness


@intrinsic
def _prefetch(typingctx, table, place):
    """Hint that table[place], a number, is about to be read and written; a no-op for the program's meaning."""

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


@inlined()
def prefetch_row(table, row):
    """Ask for all cache lines of table[row]; table is a C-contiguous array of one or two dimensions, or None: nothing."""
    if table is None:
        return
    if table.ndim == 1:
        _prefetch(table, (row,))
    else:
        for column in range(0, table.shape[1], LINE_BYTES // table.itemsize):
            _prefetch(table, (row, column))


# The memory bandwidth of this machine, measured: the yardstick for whatever memory bounds.


@launched(parallel=True)
def _read_modify_write(array, chunks, step):
    size = array.size // chunks
    for chunk in numba.prange(chunks):
        part = array[chunk * size : (chunk + 1) * size]
        for i in range(part.size):
            part[i] += step


def pass_over(arrays: Sequence[Array], step: float = 0) -> float:
    """Bytes a second of one `array += step` over each of these float arrays, one read and one write of each number.

    Memory of one machine is not equally fast everywhere; so measure with the arrays that the work uses. A step of 0 leaves
    them as they are.
    """
    start = time.perf_counter()
    for array in arrays:
        flat = array.reshape(-1)
        _read_modify_write(flat, numba.get_num_threads() * 8, flat.dtype.type(step))
    return 2 * sum(array.nbytes for array in arrays) / (time.perf_counter() - start)


def read_modify_write(megabytes: int = 1024, repeat: int = 5) -> list[float]:
    """Samples of the bandwidth of `array += 1`, in bytes a second, on the current number of Numba threads.

    Counts 8 bytes a float32: one read, one write. The array is larger than any cache; the first pass is not timed.
    """
    array = np.zeros(megabytes * 2**18, np.float32)
    return [pass_over([array], 1) for _ in range(repeat + 1)][1:]


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


# Tables whose pages several threads write first, since the system puts a page on the node of memory of its first writer.
#
# NumPy writes a table in one thread: all of it lies on one node then, whose bandwidth is all that the threads of other nodes
# have. Here each thread writes an even run of the table. Runs of rows are also what threads take of units and of a full
# softmax; rows by id, and nodes of a tree, have owners that a page knows nothing of, and lie on all nodes evenly. A checkpoint
# is read into tables that are there, so their pages stay where they are. On a machine of one node nothing is done, and no
# kernel runs.

NODES = Path("/sys/devices/system/node")


def touched_zeros(shape: tuple[int, ...], dtype: DTypeLike) -> Array:
    """Written zeros, which begin on a cache line."""
    made = empty(shape, dtype)
    if _several():
        _fill(_flat(made), numba.get_num_threads())
    else:
        made.fill(0)
    return made


def spread_pages(array: Array) -> Array:
    """The array itself, or on several nodes a copy which begins on a cache line; array is contiguous."""
    if not _several():
        return array
    made = empty(array.shape, array.dtype)
    _copy(_flat(made), _flat(array), numba.get_num_threads())
    return made


def _several() -> bool:
    """Whether this machine has several nodes of memory."""
    return len(list(NODES.glob("node[0-9]*"))) > 1


def _flat(array: Array) -> Array:
    """Its bytes."""
    return array.reshape(-1).view(np.uint8)


@launched(parallel=True)
def _fill(out, threads):
    for thread in numba.prange(threads):
        for i in range(thread * out.size // threads, (thread + 1) * out.size // threads):
            out[i] = 0


@launched(parallel=True)
def _copy(out, array, threads):
    for thread in numba.prange(threads):
        for i in range(thread * out.size // threads, (thread + 1) * out.size // threads):
            out[i] = array[i]
