"""Communication between ranks: host arrays, in MPI calls that let other threads run."""

import contextlib
import os
import pickle
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, TypeVar, cast

import numpy as np

from .. import backend
from ..machine import SingleRank
from .world import watch, world

T = TypeVar("T")
TOLD = (ValueError, IndexError, OSError, FloatingPointError, MemoryError)  # user errors, raised on all ranks
TAGS = 2**15  # minimum number of tags in every MPI


class Group(SingleRank):
    """All ranks of this run, which make the same calls in the same order. A single process is a group of one.

    rank, size  of this process, and the number of ranks

    From the first group on, `hybrid.backend.choose` assigns a machine's GPUs to its ranks in turn.
    """

    def __init__(self) -> None:
        this = world()
        self.rank, self.size, self._exchanges = this.rank, this.size, 0
        backend.turn = this.local_rank
        if self.size > 1:
            from mpi4py import MPI

            self._mpi: Any = MPI
            self._comm: Any = MPI.COMM_WORLD.Dup()  # separates messages of different groups
            watch()

    def most(self, numbers: np.ndarray) -> None:
        """Replaces each element of an array by the maximum over ranks, such as for flags."""
        if self.size > 1:
            _until(self._comm.Iallreduce(self._mpi.IN_PLACE, numbers, self._mpi.MAX).Test)

    def greatest(self, *numbers: int) -> tuple[int, ...]:
        """Returns the element-wise maximum over ranks of whole numbers, for joint decisions."""
        if self.size == 1:
            return numbers
        found = np.array(numbers, np.int64)
        self.most(found)
        return tuple(found.tolist())

    def once(self, work: Callable[[], T]) -> T:
        """Returns the result of rank 0's work on all ranks; the others wait, and then see complete files.

        The result must be picklable. An error in `TOLD` is raised on all ranks; any other on rank 0 alone, which ends all.
        """
        if self.size == 1:
            return work()
        found = None
        with self.together():
            if self.rank == 0:
                found = work()
        received = self._broadcast(pickle.dumps(found))
        return cast(T, found if self.rank == 0 else pickle.loads(received))  # from this program, hence trusted

    @contextlib.contextmanager
    def together(self) -> Iterator[None]:
        """A context that fails on all ranks or none: if some raise an error in `TOLD`, all raise that of the lowest rank.

        Any other error is raised only where it occurs, which ends all. OSError and MemoryError get a note of the rank and its
        host.
        """
        if self.size == 1:
            yield
            return
        failure: Exception | None = None
        try:
            yield
        except TOLD as error:
            failure = error
            if isinstance(error, OSError | MemoryError):
                error.add_note(f"found by {world().name}")
        (first,) = self.greatest(-self.rank if failure else -self.size)
        if first == -self.size:
            return
        received = self._broadcast(pickle.dumps(failure), -first)
        raise failure if self.rank == -first and failure else pickle.loads(received)

    def share(self, array: np.ndarray, rank: int = 0) -> None:
        """Broadcasts one rank's contents of an array, contiguous and of equal size everywhere."""
        if self.size > 1:
            _until(self._comm.Ibcast(_bytes(array), rank).Test)

    def join(self, whole: np.ndarray, counts: Sequence[int] | np.ndarray) -> None:
        """Fills a flat array from the contiguous parts of all ranks; each rank has written its own.

        counts  elements of each rank, the same on all
        """
        if self.size > 1:
            places = np.cumsum(counts) - counts
            parts = [whole.view(np.uint8), *(np.multiply(n, whole.itemsize) for n in (counts, places)), self._mpi.BYTE]
            _until(self._comm.Iallgatherv(self._mpi.IN_PLACE, parts).Test)

    def exchange(self, send: Mapping[int, np.ndarray], receive: Mapping[int, np.ndarray]) -> "Exchange":
        """Returns a repeatable exchange of contiguous arrays with other ranks, by rank.

        Both sides specify arrays of equal size; an array of no bytes is not sent. All ranks create exchanges in the same
        order, also those without arrays.
        """
        self._exchanges = (self._exchanges + 1) % TAGS
        comings = [(rank, array) for rank, array in receive.items() if array.nbytes]
        goings = [(rank, array) for rank, array in send.items() if array.nbytes]
        if self.size == 1:
            return Exchange([])
        requests = [self._comm.Recv_init(_bytes(array), rank, self._exchanges) for rank, array in comings]
        requests += [self._comm.Send_init(_bytes(array), rank, self._exchanges) for rank, array in goings]
        return Exchange(requests)

    def _broadcast(self, words: bytes, rank: int = 0) -> bytearray:
        """Returns one rank's bytes on all ranks."""
        length = np.array([len(words)], np.int64)
        self.share(length, rank)
        data = bytearray(words) if self.rank == rank else bytearray(length[0])
        self.share(np.frombuffer(data, np.uint8), rank)
        return data

    @property
    def others(self) -> list[int]:
        """The ranks other than this one."""
        return [rank for rank in range(self.size) if rank != self.rank]


class Exchange:
    """A set of persistent messages, possibly empty.
    Between `start` and `wait`, their arrays must not be written, nor received ones read."""

    def __init__(self, requests: list[Any]):
        self._requests = requests

    def start(self) -> None:
        """Starts to send and receive."""
        if self._requests:
            type(self._requests[0]).Startall(self._requests)

    def wait(self) -> None:
        """Waits until all messages are received and all arrays may be reused."""
        if self._requests:
            _until(lambda: type(self._requests[0]).Testall(self._requests))

    def run(self) -> None:
        """Runs the exchange once and frees its requests."""
        self.start()
        self.wait()
        for request in self._requests:
            request.Free()
        self._requests = []


def _until(over: Callable[[], bool]) -> None:
    """Waits and yields the core to other stages of this rank, or to ranks it waits for.

    MPI's own waits spin, and would leave computing threads on that core only every other time slice of some milliseconds.
    """
    while not over():
        os.sched_yield()


def _bytes(array: np.ndarray) -> list[Any]:
    from mpi4py import MPI

    return [array, array.nbytes, MPI.BYTE]
