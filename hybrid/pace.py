"""How the cores are spent: every stage in turn on all of them, or dense and sparse stages at the same time on a share each."""

import statistics
from typing import Any

from .schedule import Schedule

SKIPPED = 2  # ticks after a change that are not measured: kernels load, threads start
DENSE = ("dense", "copy in", "copy out")  # the queues of the device where dense stages run
MEASURED = 6  # ticks a way of spending the cores is measured for


class Pace:
    """The queues of a run; measures both ways in the first ticks where the user left the choice open.

    dense, sparse  devices of the two kinds of stages
    overlap        True, False, or None: measure. The choice changes no number, since results depend neither on the number
                   of threads nor on how queues overlap.
    """

    def __init__(self, dense, sparse, threads: int, overlap: bool | None):
        apart = not dense.shares_host
        if overlap and threads < 2 and not apart:
            raise ValueError(f"overlap: needs at least 2 threads, found {threads}; raise threads or leave overlap out")
        inline = sparse.inline("all", threads)
        here = dense.inline("dense", threads) if apart else inline
        self.ways: dict[bool, dict[str, Any]] = {False: dict.fromkeys(DENSE, here) | {"sparse": inline}}
        if apart and overlap is not False:  # a GPU takes no cores away, so there is nothing to choose
            queues = {name: dense.queue(name, 0) for name in DENSE}
            self.ways = {True: queues | {"sparse": sparse.queue("sparse", threads)}}
        elif overlap is not False and threads > 1:
            share = threads // 2
            queues = dict.fromkeys(DENSE, dense.queue("dense", share))
            self.ways[True] = queues | {"sparse": sparse.queue("sparse", threads - share)}
        self.measuring = overlap is None and len(self.ways) == 2
        self.overlapped = bool(overlap) or False not in self.ways
        self.seconds: dict[bool, list[float]] = {False: [], True: []}

    @property
    def queues(self) -> dict[str, Any]:
        """The queues in use, by name."""
        return self.ways[self.overlapped]

    def note(self, schedule: Schedule) -> None:
        """Count a finished tick; while measuring, change to the other way, and in the end to the faster one."""
        if not self.measuring:
            return
        seconds = self.seconds[self.overlapped]
        seconds.append(schedule.seconds)
        if len(seconds) < SKIPPED + MEASURED:
            return
        schedule.wait()
        if self.overlapped:
            self.overlapped = self.median(True) < self.median(False)
            self.measuring = False
        else:
            self.overlapped = True
        schedule.queues = self.queues
        schedule.trace.clear()

    def median(self, overlapped: bool) -> float:
        """Median seconds of a tick, as measured for one way of spending the cores."""
        return statistics.median(self.seconds[overlapped][SKIPPED:])

    def line(self) -> str:
        """The choice and its reason, in one printed line."""
        way = "dense and sparse stages overlapped" if self.overlapped else "stages in turn on all threads"
        if len(self.seconds[True]) < SKIPPED + MEASURED:
            return way
        turn, overlapped = (1e3 * self.median(way) for way in (False, True))
        return f"{way} (measured: {turn:.2f} ms a tick in turn, {overlapped:.2f} ms overlapped)"

    def close(self) -> None:
        """End the threads of all queues."""
        for queues in self.ways.values():
            for queue in queues.values():
                queue.close()
