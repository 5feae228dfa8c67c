"""A stable sort of ids on the device, which makes the positions of an id adjacent and ordered; see gpu/sort.cu."""

import numpy as np

from gpu import device
from gpu.runtime import kernels
from gpu.runtime.array import Array

SHORT = 4096  # maximum number of ids sorted by comparisons, in one launch; a radix sort takes two per digit
THREADS, EACH, BITS, TILE = 256, 4, 8, 2048  # as in sort.cu


def by_id(ids: Array, rows: int) -> tuple[Array, Array]:
    """Returns the ids in ascending order, and the position n of each in `ids`, equal ids in the order of n; both (N,) int32.

    rows  upper bound of the ids, which determines the number of bits to sort by

    The results are scratch of the queue, valid until the next sort.
    """
    N = ids.size
    both = (device.scratch(f"ids, sorted {way}", (2, N), np.int32) for way in ("there", "back"))
    there, back = ((array[:1].reshape(N), array[1:].reshape(N)) for array in both)
    if N <= SHORT:
        kernels.launch(__file__, "rank", "PPPi", -(-N // (THREADS // 32 * EACH)), THREADS, *there, ids, N)
        return there
    tiles = -(-N // TILE)
    counts = device.scratch("counts of digits", (tiles, 1 << BITS), np.int32)
    read: tuple[Array, Array | None] = ids, None
    for shift in range(0, max((rows - 1).bit_length(), 1), BITS):
        kernels.launch(__file__, "count", "PPii", tiles, THREADS, counts, read[0], shift, N)
        kernels.launch(__file__, "pass", "PPPPPii", tiles, THREADS, *there, *read, counts, shift, N)
        read, there, back = there, back, there
    return back
