"""Tables whose pages several threads write first, since the system puts a page on the node of memory of its first writer.

NumPy writes a table in one thread: all of it lies on one node then, whose bandwidth is all that the threads of other nodes
have. Here each thread writes an even run of the table. Runs of rows are also what threads take of units and of a full softmax;
rows by id, and nodes of a tree, have owners that a page knows nothing of, and lie on all nodes evenly. A checkpoint is read
into tables that are there, so their pages stay where they are. On a machine of one node nothing is done, and no kernel runs.
"""

from pathlib import Path

import numba
import numpy as np
from numpy.typing import DTypeLike

from cpu import aligned
from cpu.array import Array
from cpu.compiled import launched

NODES = Path("/sys/devices/system/node")


def zeros(shape: tuple[int, ...], dtype: DTypeLike) -> Array:
    """Written zeros, which begin on a cache line."""
    made = aligned.empty(shape, dtype)
    if _several():
        _fill(_flat(made), numba.get_num_threads())
    else:
        made.fill(0)
    return made


def spread(array: Array) -> Array:
    """The array itself, or on several nodes a copy which begins on a cache line; array is contiguous."""
    if not _several():
        return array
    made = aligned.empty(array.shape, array.dtype)
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
