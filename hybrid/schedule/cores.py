"""How the cores are spent: stages in turn on all cores, or dense and sparse stages at the same time on a share each."""

import statistics
from collections.abc import Sequence
from typing import Any

from .schedule import Schedule

SKIPPED = 2  # ticks after a change that are not measured: kernels load, threads start
DENSE = ("dense", "copy in", "copy out")  # the queues of the device where dense stages run
MEASURED = 4  # ticks a way of spending the cores is measured for at a time
TURNS = (False, True, False, True)  # the ways take turns: what else the machine does meets both


class Cores:
    """The queues of a run. Where the user leaves the choice open, both ways are measured in the first ticks.

    dense, sparse  devices of the two kinds of stages
    threads        CPU threads in total, which queues that work at the same time share
    overlap        True, False, or None: measure. The choice changes no number, since results depend neither on the number
                   of threads nor on how queues overlap.
    spare          True: stages in turn take one thread, and the feed has another one, if there are two
    others         queues of the host that wait more than they work, by name: where stages overlap, each is a thread more
    """

    def __init__(
        self,
        dense: Any,
        sparse: Any,
        threads: int,
        overlap: bool | None,
        spare: bool = False,
        others: Sequence[str] = (),
    ):
        self._sparse = sparse
        apart = not dense.threads
        if overlap and threads < 2 and not apart:
            raise ValueError(f"overlap: needs at least 2 threads, found {threads}; raise threads or leave overlap out")
        inline = sparse.inline("all", threads)
        here = dense.inline("dense", threads) if apart else inline
        self._in_turn = "stages in turn on all threads"
        if spare:
            self._in_turn = "one thread learns" + (", one makes the next batch" if threads > 1 else "")
        feed = sparse.queue("feed", 1) if spare and threads > 1 else inline
        in_turn = dict.fromkeys(DENSE, here) | {"sparse": inline, "feed": feed} | dict.fromkeys(others, inline)
        self.ways: dict[bool, dict[str, Any]] = {False: in_turn}
        if apart and overlap is not False:  # a GPU takes no cores but that of the thread which feeds it
            queues = {name: dense.queue(name, 0) for name in DENSE}
            self.ways = {True: queues | self._host_queues(threads - 1)}
        elif overlap is not False and threads > 1:
            share = (threads - (threads > 2)) // 2
            queues = dict.fromkeys(DENSE, dense.queue("dense", share))
            self.ways[True] = queues | self._host_queues(threads - share)
        if True in self.ways:
            self.ways[True] |= {name: sparse.queue(name, 1) for name in others}
        self.measuring = overlap is None and len(self.ways) == 2
        self.overlapped = bool(overlap) or False not in self.ways
        self._turns, self._ticks = list(TURNS), 0
        self.seconds: dict[bool, list[float]] = {False: [], True: []}

    def _host_queues(self, threads: int) -> dict[str, Any]:
        """The queue of the sparse stages, and that of the feed: a thread of its own if one can be spared, else the caller's."""
        spare = threads > 1
        share = max(threads - spare, 1)
        feed = self._sparse.queue("feed", 1) if spare else self._sparse.inline("feed", 1)
        return {"sparse": self._sparse.queue("sparse", share), "feed": feed}

    @property
    def queues(self) -> dict[str, Any]:
        """The queues in use, by name."""
        return self.ways[self.overlapped]

    def note(self, schedule: Schedule) -> None:
        """Count a finished tick. While measuring, change to the other way in time, and at the end to the faster one."""
        if not self.measuring:
            return
        self._ticks += 1
        if self._ticks > SKIPPED:
            self.seconds[self.overlapped].append(schedule.seconds)
        if self._ticks < SKIPPED + MEASURED:
            return
        schedule.wait()
        self._ticks = 0
        self._turns.pop(0)
        self.measuring = bool(self._turns)
        self.overlapped = self._turns[0] if self._turns else self.median(True) < self.median(False)
        schedule.queues = self.queues
        schedule.trace.clear()

    def median(self, overlapped: bool) -> float:
        """Median seconds of a tick, as measured for one way of spending the cores."""
        return statistics.median(self.seconds[overlapped])

    def line(self) -> str:
        """The choice and its reason, in one printed line."""
        way = "dense and sparse stages overlapped" if self.overlapped else self._in_turn
        if self.measuring or not self.seconds[True]:
            return way
        turn, overlapped = (1e3 * self.median(way) for way in (False, True))
        return f"{way} (measured: {turn:.2f} ms a tick in turn, {overlapped:.2f} ms overlapped)"

    def close(self) -> None:
        """End the threads of all queues."""
        for queues in self.ways.values():
            for queue in queues.values():
                queue.close()
