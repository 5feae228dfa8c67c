"""What ranks tell each other: arrays of the host, in calls of MPI that let other threads run."""

import contextlib
import os
import pickle
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, TypeVar, cast

import numpy as np

from .. import backend
from ..machine import SingleRank
from .world import world

T = TypeVar("T")
TOLD = (ValueError, IndexError, OSError, FloatingPointError, MemoryError)  # errors that concern the user of all ranks
TAGS = 2**15  # that every MPI has


class Group(SingleRank):
    """All ranks of this run; they make the same calls of it in the same order. A process without ranks is a group of one.

    rank, size  of this process, and how many there are

    From the first group on `hybrid.backend.choose` lets the ranks of a machine take its GPUs in turn.
    """

    def __init__(self) -> None:
        this = world()
        self.rank, self.size, self._exchanges = this.rank, this.size, 0
        backend.turn = this.local_rank
        if self.size > 1:
            from mpi4py import MPI

            self._mpi: Any = MPI
            self._comm: Any = MPI.COMM_WORLD.Dup()  # no message of another group meets one of this

    def barrier(self) -> None:
        """Wait until all ranks have come."""
        if self.size > 1:
            _until(self._comm.Ibarrier().Test)

    def most(self, numbers: np.ndarray) -> None:
        """Put the greatest of all ranks into each place of an array: flags of which one counts, say."""
        if self.size > 1:
            _until(self._comm.Iallreduce(self._mpi.IN_PLACE, numbers, self._mpi.MAX).Test)

    def greatest(self, *numbers: int) -> tuple[int, ...]:
        """The greatest of all ranks, of each of these whole numbers: what each asks for, so that all do the same."""
        if self.size == 1:
            return numbers
        found = np.array(numbers, np.int64)
        self.most(found)
        return tuple(found.tolist())

    def once(self, work: Callable[[], T]) -> T:
        """What rank 0's work returns, on all ranks: it writes a file, say. The others wait, and have the files whole then.

        The result can be pickled. An error of `TOLD` is raised on all; any other on rank 0 alone, which ends all.
        """
        if self.size == 1:
            return work()
        found = None
        with self.together():
            if self.rank == 0:
                found = work()
        told = self._said(pickle.dumps(found))
        return cast(T, found if self.rank == 0 else pickle.loads(told))  # of this very program, not of a stranger

    @contextlib.contextmanager
    def together(self) -> Iterator[None]:
        """What all ranks do within fails on all or on none: where some raise an error of `TOLD`, all raise that of the lowest.

        Any other error is raised where it comes alone, which ends all. One of a machine has a note of the rank and its host.
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
        told = self._said(pickle.dumps(failure), -first)
        raise failure if self.rank == -first and failure else pickle.loads(told)

    def share(self, array: np.ndarray, rank: int = 0) -> None:
        """Overwrite an array, contiguous and of the same size everywhere, with what one rank has there."""
        if self.size > 1:
            _until(self._comm.Ibcast(_bytes(array), rank).Test)

    def gather_all(self, parts: Sequence[np.ndarray]) -> None:
        """Each rank has written its own of these arrays, parts[rank]; afterwards all have all of them."""
        self.exchange(dict.fromkeys(self.others, parts[self.rank]), {rank: parts[rank] for rank in self.others}).run()

    def join(self, whole: np.ndarray, counts: Sequence[int] | np.ndarray) -> None:
        """Fill a flat array that is the parts of all ranks, one behind the other; each rank has written its own.

        counts  numbers of each rank, the same on all
        """
        if self.size > 1:
            places = np.cumsum(counts) - counts
            parts = [whole.view(np.uint8), *(np.multiply(n, whole.itemsize) for n in (counts, places)), self._mpi.BYTE]
            _until(self._comm.Iallgatherv(self._mpi.IN_PLACE, parts).Test)

    def exchange(self, send: Mapping[int, np.ndarray], receive: Mapping[int, np.ndarray]) -> "Exchange":
        """Arrays that go to other ranks and that come from them, by rank: contiguous ones, the same each time.

        Both sides name an array, of as many bytes; an array of no bytes is not sent. All ranks make their exchanges in the
        same order, and each of them may have none of the others.
        """
        self._exchanges = (self._exchanges + 1) % TAGS
        comings = [(rank, array) for rank, array in receive.items() if array.nbytes]
        goings = [(rank, array) for rank, array in send.items() if array.nbytes]
        if self.size == 1:
            return Exchange([])
        requests = [self._comm.Recv_init(_bytes(array), rank, self._exchanges) for rank, array in comings]
        requests += [self._comm.Send_init(_bytes(array), rank, self._exchanges) for rank, array in goings]
        return Exchange(requests)

    def _said(self, words: bytes, rank: int = 0) -> bytearray:
        """What one rank says, on all ranks."""
        length = np.array([len(words)], np.int64)
        self.share(length, rank)
        said = bytearray(words) if self.rank == rank else bytearray(length[0])
        self.share(np.frombuffer(said, np.uint8), rank)
        return said

    @property
    def others(self) -> list[int]:
        """All ranks but this one."""
        return [rank for rank in range(self.size) if rank != self.rank]


class Exchange:
    """Messages that are sent again and again. Between `start` and `wait` their arrays are neither written nor, those that
    come, read. There may be none.
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
            _until(lambda: type(self._requests[0]).Testall(self._requests))

    def run(self) -> None:
        """Begin, wait, and never again."""
        self.start()
        self.wait()
        for request in self._requests:
            request.Free()
        self._requests = []


def _until(over: Callable[[], bool]) -> None:
    """Wait, and leave the core to whoever computes on it meanwhile: another stage of this rank, or a rank that is waited for.

    MPI's own waits keep a core busy, and those that compute there get it for every other turn of some milliseconds only.
    """
    while not over():
        os.sched_yield()


def _bytes(array: np.ndarray) -> list[Any]:
    from mpi4py import MPI

    return [array, array.nbytes, MPI.BYTE]
