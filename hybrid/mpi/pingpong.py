"""How long messages take between ranks: there and back, all with all."""

import math
import time
from collections.abc import Callable
from typing import Any

import numpy as np

from .world import world

SIZES = tuple(8 << power for power in (0, 4, 8, 11, 14, 17, 19))  # bytes: 8 to 4 Mi
LARGE, ROWS = 4 << 20, 256 << 10  # bytes of an allreduce; those that each rank sends to each other one
SECONDS = 0.004  # that one sample takes, about: many short messages, or one long one
TURNS = 2000  # in one sample at most
REST = 0.001  # seconds between two looks of a rank that waits, so that it takes no core from those that are measured


class Messages:
    """Messages of this run's ranks, which are timed. All ranks make the same calls in the same order.

    Needs ranks: ValueError in a world of one.
    """

    def __init__(self) -> None:
        this = world()
        if this.size == 1:
            raise ValueError("messages: found one rank, expected two at least; start them by hybrid launch -n 2")
        from mpi4py import MPI

        self.rank, self.size, self._mpi = this.rank, this.size, MPI
        self._comm: Any = MPI.COMM_WORLD.Dup()

    def pingpong(self, other: int, size: int, repeat: int = 7) -> list[float]:
        """Samples of the seconds that a message of `size` bytes takes one way, between rank 0 and another; [] elsewhere."""
        gone, come = np.zeros(size, np.uint8), np.empty(size, np.uint8)

        def there_and_back() -> None:
            if self.rank == 0:
                self._comm.Send([gone, size, self._mpi.BYTE], other)
                self._comm.Recv([come, size, self._mpi.BYTE], other)
            else:
                self._comm.Recv([come, size, self._mpi.BYTE], 0)
                self._comm.Send([gone, size, self._mpi.BYTE], 0)

        samples = self._timed(there_and_back, repeat, self.rank in (0, other))
        return [seconds / 2 for seconds in samples]

    def allreduce(self, size: int = LARGE, repeat: int = 7) -> list[float]:
        """Samples of the seconds that all ranks take to sum `size` bytes of float32 numbers."""
        array, total = np.zeros((2, size // 4), np.float32)
        return self._timed(lambda: self._comm.Allreduce(array, total), repeat)

    def alltoall(self, size: int = ROWS, repeat: int = 7) -> list[float]:
        """Samples of the seconds in which each rank sends `size` bytes to each."""
        gone, come = np.zeros((2, self.size, size), np.uint8)
        return self._timed(lambda: self._comm.Alltoall(gone, come), repeat)

    def _timed(self, once: Callable[[], Any], repeat: int, taking_part: bool = True) -> list[float]:
        """Samples of the seconds of a call, of as many in a row as rank 0 finds long enough; [] where it is not called."""
        turns = np.ones(1, np.int64)
        if taking_part:
            once()
            start = time.perf_counter()
            once()
            turns[0] = math.ceil(min(TURNS, SECONDS / (time.perf_counter() - start)))
        self._rest()
        self._comm.Bcast(turns, 0)
        samples = [self._together(once, int(turns[0])) for _ in range(repeat)] if taking_part else []
        self._rest()
        return samples

    def _together(self, once: Callable[[], Any], turns: int) -> float:
        start = time.perf_counter()
        for _ in range(turns):
            once()
        return (time.perf_counter() - start) / turns

    def _rest(self) -> None:
        """Wait until all have come, leaving the core to those that have not."""
        come = self._comm.Ibarrier()
        while not come.Test():
            time.sleep(REST)
