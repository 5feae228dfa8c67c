"""The machine's own memory bandwidth, measured: what every bandwidth-bound figure is held against."""

import time

import numba
import numpy as np


@numba.njit(parallel=True, cache=True)
def _read_modify_write(array, chunks, step):
    size = array.size // chunks
    for chunk in numba.prange(chunks):
        part = array[chunk * size : (chunk + 1) * size]
        for i in range(part.size):
            part[i] += step


def read_modify_write(megabytes=1024, repeat=5):
    """Samples of the bandwidth of `array += 1`, in bytes a second, on the current number of Numba threads.

    Counts 8 bytes a float32: one read, one write. The array is larger than any cache; its first visit is not timed.
    """
    array = np.zeros(megabytes * 2**18, np.float32)
    samples = []
    for turn in range(repeat + 1):
        start = time.perf_counter()
        _read_modify_write(array, numba.get_num_threads() * 8, np.float32(1))
        if turn:
            samples.append(2 * array.nbytes / (time.perf_counter() - start))
    return samples
