"""What a machine reaches at most: bytes a second through memory, operations a second of a BLAS on small matrices."""

import functools
import time

import numpy as np

from bench.measure import Work
from bench.units_problem import HIDDEN, INPUTS, OUTPUTS, SEED


def bandwidth(megabytes: int, threads: int) -> Work:
    """The machine itself takes a turn among the rivals: its bandwidth drifts, so a share is taken turn by turn."""
    from cpu.runtime.memory import read_modify_write

    moved = 2.0 * megabytes * 2**20

    def seconds():
        return moved / read_modify_write(megabytes, repeat=1)[0]

    work = functools.partial(Work, threads=threads, warm=0, own_clock=True)
    return work("units.bandwidth", "machine", {}, moved, "bytes/s", seconds, lambda: None)


def gemm(batch: int, threads: int) -> Work:
    """What SciPy's BLAS reaches on small matrices that lie in the core's cache, one after another: the best of four shapes.

    Three are products of the step; one thread is timed, and counted as often as there are threads.
    """
    import numba

    from cpu.vectors.blas import gemm as product

    @numba.njit
    def again(out, a, b, times):
        for _ in range(times):
            product(out, a, b, 1, 0)

    shapes = ((OUTPUTS, HIDDEN, batch), (HIDDEN, INPUTS, batch), (batch, HIDDEN, OUTPUTS), (64, 64, 64))
    rng, operations = np.random.default_rng(SEED), 4e8
    given = [[rng.random(size, dtype=np.float32) for size in ((m, n), (m, k), (k, n))] for m, n, k in shapes]

    def seconds():
        taken = []
        for (m, n, k), arrays in zip(shapes, given, strict=True):
            times = int(operations / (2 * m * n * k))
            start = time.perf_counter()
            again(*arrays, times)
            taken.append((time.perf_counter() - start) * operations / (2 * m * n * k * times))
        return min(taken)

    work = functools.partial(Work, threads=threads, warm=1, own_clock=True)
    return work("units.gemm", "machine", {}, threads * operations, "FLOP/s", seconds, lambda: None)
