"""Large arrays of a result in portions, each by one of several threads: NumPy leaves the interpreter to others meanwhile.

While a complete result is made no tick is under way, so a GPU waits for it: of flat210m it took as long as three ticks.
"""

import functools
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import numpy as np

PORTION = 1 << 16  # numbers: some passes over them find them in a core's cache


def in_portions(work: Callable[[slice], object], size: int, threads: int) -> None:
    """Do `work` for slices that cover `size` numbers, on up to so many threads; arrays of one slice need no other thread."""
    slices = [slice(first, min(first + PORTION, size)) for first in range(0, size, PORTION)]
    if threads == 1 or len(slices) < 2:
        for one in slices:
            work(one)
    else:
        for _ in _helpers(threads).map(work, slices):  # what one of them raises is raised here
            pass


def copied(array: np.ndarray, threads: int) -> np.ndarray:
    """A copy of a contiguous array."""
    made, flat = np.empty_like(array).reshape(-1), array.reshape(-1)

    def copy(these: slice) -> None:
        made[these] = flat[these]

    in_portions(copy, flat.size, threads)
    return made.reshape(array.shape)


@functools.cache
def _helpers(threads: int) -> ThreadPoolExecutor:
    """They end with the process; a model with large frames makes them, others never do."""
    return ThreadPoolExecutor(threads, "pvm result")
