"""What ranks tell each other: arrays of the host, in calls of MPI that let other threads run and that the watchdog knows."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from .watch import meeting
from .world import world


class Group:
    """All ranks of this run; they make the same calls of it in the same order. A process without ranks is a group of one.

    rank, size  of this process, and how many there are
    """

    def __init__(self) -> None:
        self.rank, self.size = world()[:2]
        self._exchanges = 0
        if self.size > 1:
            from mpi4py import MPI

            self._mpi: Any = MPI
            self._comm: Any = MPI.COMM_WORLD.Dup()  # no message of another group meets one of this

    def barrier(self) -> None:
        """Wait until all ranks have come."""
        if self.size > 1:
            with meeting():
                self._comm.Barrier()

    def most(self, numbers: np.ndarray) -> None:
        """Put the greatest of all ranks into each place of an array: flags of which one counts, say."""
        if self.size > 1:
            with meeting():
                self._comm.Allreduce(self._mpi.IN_PLACE, numbers, self._mpi.MAX)

    def share(self, array: np.ndarray, rank: int = 0) -> None:
        """Overwrite an array, contiguous and of the same size everywhere, with what one rank has there."""
        if self.size > 1:
            with meeting():
                self._comm.Bcast(_bytes(array), rank)

    def gather_all(self, parts: Sequence[np.ndarray]) -> None:
        """Each rank has written its own of these arrays, parts[rank]; afterwards all have all of them."""
        self.exchange(dict.fromkeys(self.others, parts[self.rank]), {rank: parts[rank] for rank in self.others}).run()

    def exchange(self, send: Mapping[int, np.ndarray], receive: Mapping[int, np.ndarray]) -> "Exchange":
        """Arrays that go to other ranks and that come from them, by rank: contiguous ones, the same each time.

        Both sides name an array, of as many bytes; an array of no bytes is not sent. All ranks make their exchanges in the
        same order, and each of them may have none of the others.
        """
        self._exchanges += 1
        comings = [(rank, array) for rank, array in receive.items() if array.nbytes]
        goings = [(rank, array) for rank, array in send.items() if array.nbytes]
        requests = [self._comm.Recv_init(_bytes(array), rank, self._exchanges) for rank, array in comings]
        requests += [self._comm.Send_init(_bytes(array), rank, self._exchanges) for rank, array in goings]
        return Exchange(requests)

    @property
    def others(self) -> list[int]:
        """All ranks but this one."""
        return [rank for rank in range(self.size) if rank != self.rank]


class Exchange:
    """Messages that are sent again and again. Between `start` and `wait` their arrays are neither written nor, those that
    come, read.
    """

    def __init__(self, requests: list[Any]):
        self._requests = requests

    def start(self) -> None:
        """Begin to send and to receive."""
        if self._requests:
            type(self._requests[0]).Startall(self._requests)

    def wait(self) -> None:
        """Wait until all has come, and all may be written again."""
        if self._requests:
            with meeting():
                type(self._requests[0]).Waitall(self._requests)

    def run(self) -> None:
        """Begin, wait, and never again."""
        self.start()
        self.wait()
        for request in self._requests:
            request.Free()
        self._requests = []


def _bytes(array: np.ndarray) -> list[Any]:
    from mpi4py import MPI

    return [array, array.nbytes, MPI.BYTE]
