"""The memory bandwidth of this machine, measured: the yardstick for whatever memory bounds."""

import time
from collections.abc import Sequence

import numba
import numpy as np

from cpu.array import Array
from cpu.compiled import launched


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
