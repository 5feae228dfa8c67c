"""Ranks in one process: threads that take turns, drawn from a seed, at whatever they tell each other.

`Group` here is hybrid.ranks.group.Group without MPI, and unkind where MPI may be: what is to come is poison until it is waited
for, and what goes is read as late as possible. The same seed gives the same turns again.
"""

import contextlib
import random
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from hybrid.ranks.everyone import Member
from hybrid.ranks.group import TOLD


class Over(BaseException):
    """Another rank has failed."""


def run(size: int, seed: str, work: Callable[["Group"], Any]) -> list[Any]:
    """What each rank's work returns; raises what the first to fail has raised."""
    world = _World(size, random.Random(seed))
    threads = [
        threading.Thread(target=world.live, args=(rank, work), name=f"rank {rank}", daemon=True) for rank in range(size)
    ]
    for thread in threads:
        thread.start()
    world.turns[0].release()
    for thread in threads:
        thread.join()
    if world.failure:
        raise world.failure
    return world.results


class _World:
    """Whose turn it is, and what has been told."""

    def __init__(self, size: int, rng: random.Random):
        self.size, self._rng = size, rng
        self.turns = [threading.Semaphore(0) for _ in range(size)]
        self._alive = list(range(size))
        self._awaited: dict[int, Callable[[], bool]] = {}
        self.told: dict[Any, list[Any]] = {}
        self.failure: BaseException | None = None
        self.results: list[Any] = [None] * size

    def live(self, rank: int, work: Callable[["Group"], Any]) -> None:
        """All that a rank does."""
        self.turns[rank].acquire()
        try:
            if not self.failure:
                self.results[rank] = work(Group(self, rank))
        except BaseException as failure:
            self.failure = self.failure or failure
        self._alive.remove(rank)
        if self._alive:
            self.turns[self._next()].release()

    def until(self, rank: int, over: Callable[[], bool]) -> None:
        """Let others have their turns until it is so."""
        self._awaited[rank] = over
        following = self._next()
        if following != rank:
            self.turns[following].release()
            self.turns[rank].acquire()
        del self._awaited[rank]
        if self.failure:
            raise Over

    def _next(self) -> int:
        """A rank that can go on; any, where one has failed."""
        ready = [rank for rank in self._alive if rank not in self._awaited or self._awaited[rank]()]
        if not ready and not self.failure:
            self.failure = RuntimeError(f"ranks {self._alive}: all wait for what no rank tells")
        return self._rng.choice(self._alive if self.failure else ready)


class Group:
    """What ranks tell each other; see hybrid/ranks/group.py."""

    def __init__(self, world: _World, rank: int):
        self.rank, self.size, self._world = rank, world.size, world
        self.members = [Member(number, "here") for number in range(world.size)]
        self.others = [number for number in range(world.size) if number != rank]
        self._meetings = self._exchanges = 0

    def _meet(self, said: Any) -> list[Any]:
        """What each rank says at this meeting."""
        self._meetings += 1
        key, told = ("meeting", self._meetings), self._world.told
        words = told.setdefault(key, [[None] * self.size, 0])
        words[0][self.rank] = said
        words[1] += 1
        self._world.until(self.rank, lambda: words[1] >= self.size)
        words[1] += 1
        if words[1] == 2 * self.size:
            del told[key]
        return list(words[0])

    def barrier(self) -> None:
        self._meet(None)

    agree = barrier

    def most(self, numbers: np.ndarray) -> None:
        numbers[...] = np.max(self._meet(numbers.copy()), axis=0)

    def greatest(self, *numbers: int) -> tuple[int, ...]:
        return tuple(max(each) for each in zip(*self._meet(numbers), strict=True))

    def once(self, work: Callable[[], Any]) -> Any:
        found = None
        with self.together():
            found = work() if self.rank == 0 else None
        return self._meet(found)[0]

    @contextlib.contextmanager
    def together(self) -> Iterator[None]:
        failure = None
        try:
            yield
        except TOLD as error:
            failure = error
        first = next(filter(None, self._meet(failure)), None)
        if first:
            raise first

    def share(self, array: np.ndarray, rank: int = 0) -> None:
        array[...] = self._meet(array.copy() if rank == self.rank else None)[rank]

    def gather_all(self, parts: Sequence[np.ndarray]) -> None:
        for part, found in zip(parts, self._meet(parts[self.rank].copy()), strict=True):
            part[...] = found

    def join(self, whole: np.ndarray, counts: Any) -> None:
        ends = np.cumsum(counts)
        own = slice(ends[self.rank] - counts[self.rank], ends[self.rank])
        whole[...] = np.concatenate(self._meet(whole[own].copy()))

    def exchange(self, send: Mapping[int, np.ndarray], receive: Mapping[int, np.ndarray]) -> "Exchange":
        self._exchanges += 1
        return Exchange(self._world, self.rank, self._exchanges, send, receive)


class Exchange:
    """Messages; see hybrid/ranks/group.py."""

    def __init__(self, world: _World, rank: int, number: int, send: Any, receive: Any):
        self._world, self._rank, self._number, self._round = world, rank, number, 0
        self._send = {other: array for other, array in send.items() if array.nbytes}
        self._receive = {other: array for other, array in receive.items() if array.nbytes}

    def start(self) -> None:
        self._round += 1
        for array in self._receive.values():
            array.reshape(-1).view(np.uint8)[:] = 255
        for other, array in self._send.items():
            self._world.told[self._key(self._rank, other)] = [array, None]

    def _key(self, source: int, target: int) -> tuple[int, ...]:
        return self._number, self._round, source, target

    def wait(self) -> None:
        told = self._world.told
        for other in self._send:  # what goes there may be written from here on
            _read(told.get(self._key(self._rank, other)))
        for other, array in self._receive.items():
            key = self._key(other, self._rank)
            self._world.until(self._rank, lambda key=key: key in told)  # type: ignore[misc]
            array.reshape(-1).view(np.uint8)[:] = _read(told.pop(key))

    def run(self) -> None:
        self.start()
        self.wait()

    def settle(self) -> None:
        """Nothing is lost here."""


def _read(message: list[Any] | None) -> Any:
    """The bytes of a message, as they are now or when its sender has gone on."""
    if message is not None and message[1] is None:
        message[1] = message[0].reshape(-1).view(np.uint8).copy()
    return message and message[1]
