"""Ranks that compute and send each other messages, simulated event by event. Nothing is measured here.

A message takes `overhead` of its sender and of its receiver, waits until its line is free, and is there `latency` and so many
times `a_byte` later. A rank has a line out and a line in, each for one message at a time. Messages up to `alone` bytes go while
their ranks compute; larger ones begin when both of their ranks wait, since MPI moves them in its calls only.
"""

import heapq
from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import NamedTuple

FOREVER = 1 << 62


class Link(NamedTuple):
    """What a message costs, in seconds; see above."""

    overhead: float = 0.0
    latency: float = 0.0
    a_byte: float = 0.0
    alone: int = FOREVER


class Compute(NamedTuple):
    """A rank computes for some seconds."""

    name: str
    seconds: float


class Start(NamedTuple):
    """A rank begins to send: bytes by the rank that gets them. What it gets meanwhile belongs to its exchange of that name."""

    name: str
    sends: Mapping[int, float]


class Wait(NamedTuple):
    """A rank waits until all of its exchange of that name has come and gone."""

    name: str


class Meet(NamedTuple):
    """All ranks tell all others something, and go on together: one step of all of them, with no events of its messages.

    After the last rank has come, a rank takes the overhead of so many messages out and in, as much latency as so many messages
    in turn, and the time of so many bytes on its line.
    """

    name: str
    messages: float
    rounds: float
    size: float


Program = Sequence[Compute | Start | Wait | Meet]


class Interval(NamedTuple):
    """What a rank does from when to when."""

    rank: int
    name: str
    start: float
    end: float


class Run(NamedTuple):
    """What came out.

    ends       of each tick, when the last rank ends it
    intervals  of all ranks: what they compute, and that they wait
    """

    ends: list[float]
    intervals: list[Interval]

    @property
    def seconds(self) -> float:
        """Of a tick, once the first is past."""
        return (self.ends[-1] - self.ends[0]) / (len(self.ends) - 1) if len(self.ends) > 1 else self.ends[0]


def simulate(programs: Sequence[Program], link: Link, ticks: int = 3) -> Run:
    """Each rank does its program, again in each tick; names of exchanges are unique within a program.

    Raises ValueError where a rank would wait for ever: for an exchange that another one does not begin.
    """
    simulation = _Simulation(programs, link, ticks)
    simulation.go()
    return Run(simulation.ends, simulation.intervals)


class _Exchange:
    """One exchange of one rank in one tick: how many messages are still to move, when the others have, since when it waits."""

    def __init__(self) -> None:
        self.missing, self.over, self.waits = 0, 0.0, -1.0


class _Simulation:
    def __init__(self, programs: Sequence[Program], link: Link, ticks: int):
        self.programs, self.link, self.ticks = programs, link, ticks
        self.out, self.into = [0.0] * len(programs), [0.0] * len(programs)  # when lines are free
        self.ends = [0.0] * ticks
        self.intervals: list[Interval] = []
        self.exchanges: dict[tuple[int, int, str], _Exchange] = defaultdict(_Exchange)
        self.goes: dict[tuple[int, str], list[tuple[int, float]]] = defaultdict(list)
        self.comes: dict[tuple[int, str], list[tuple[int, float]]] = defaultdict(list)
        self.met: dict[tuple[int, str], list[tuple[int, float]]] = defaultdict(list)  # who waits in a Meet, since when
        starts = [(rank, step) for rank, program in enumerate(programs) for step in program if isinstance(step, Start)]
        for rank, step in starts:
            for to, size in step.sends.items():
                self.goes[rank, step.name].append((to, size))
                self.comes[to, step.name].append((rank, size))
        self.ready = [(0.0, rank, 0, 0) for rank in range(len(programs))]  # when, who, tick, step of its program
        self.at = dict.fromkeys(range(len(programs)), (0, 0))

    def go(self) -> None:
        while self.ready:
            now, rank, tick, place = heapq.heappop(self.ready)
            if place == len(self.programs[rank]):
                self.ends[tick] = max(self.ends[tick], now)
                self._next(now, rank, tick + 1, 0)
                continue
            step = self.programs[rank][place]
            if isinstance(step, Compute):
                self._did(rank, step.name, now, now + step.seconds)
                self._next(now + step.seconds, rank, tick, place + 1)
            elif isinstance(step, Start):
                self._next(self._start(now, rank, tick, step.name), rank, tick, place + 1)
            elif isinstance(step, Meet):
                self._meet(now, rank, tick, step)
            else:
                self._wait(now, rank, tick, step.name)
        late = [rank for rank, (tick, _) in self.at.items() if tick < self.ticks]
        if late:
            raise ValueError(f"simulation: ranks {late[:5]} wait for ever; each must start what others send to it")

    def _next(self, when: float, rank: int, tick: int, place: int) -> None:
        """Go on there."""
        self.at[rank] = tick, place
        if tick < self.ticks:
            heapq.heappush(self.ready, (when, rank, tick, place))

    def _did(self, rank: int, name: str, start: float, end: float) -> None:
        if end > start:
            self.intervals.append(Interval(rank, name, start, end))

    def _start(self, now: float, rank: int, tick: int, name: str) -> float:
        """Begin an exchange; returns when the rank has told MPI of all its messages, those that come too."""
        own, began = self.exchanges[rank, tick, name], now
        own.missing += len(self.comes[rank, name])
        for to, size in self.goes[rank, name]:
            now += self.link.overhead
            if size > self.link.alone:
                own.missing += 1
                continue
            own.over = max(own.over, self._move(now, rank, to, size, tick, name))
        now += self.link.overhead * len(self.comes[rank, name])
        self._did(rank, f"start {name}", began, now)
        return now

    def _wait(self, now: float, rank: int, tick: int, name: str) -> None:
        """Wait; what is large moves where the other rank waits, too."""
        own = self.exchanges[rank, tick, name]
        own.waits = now
        for to, size in self.goes[rank, name]:
            if size > self.link.alone and self._waits(to, tick, name):
                own.missing -= 1
                own.over = max(own.over, self._move(now, rank, to, size, tick, name))
        for source, size in self.comes[rank, name]:
            if size > self.link.alone and self._waits(source, tick, name):
                other = self.exchanges[source, tick, name]
                other.missing -= 1
                other.over = max(other.over, self._move(now, source, rank, size, tick, name))
                self._end(source, tick, name)
        self._end(rank, tick, name)

    def _meet(self, now: float, rank: int, tick: int, step: Meet) -> None:
        """Wait for all; the last one, which comes now, lets all go on."""
        here = self.met[tick, step.name]
        here.append((rank, now))
        if len(here) < len(self.programs):
            return
        link = self.link
        end = now + 2 * link.overhead * step.messages + link.latency * step.rounds + link.a_byte * step.size
        for one, since in here:
            self._did(one, f"wait {step.name}", since, end)
            self._next(end, one, tick, self.at[one][1] + 1)

    def _waits(self, rank: int, tick: int, name: str) -> bool:
        return (rank, tick, name) in self.exchanges and self.exchanges[rank, tick, name].waits >= 0

    def _move(self, now: float, rank: int, to: int, size: float, tick: int, name: str) -> float:
        """Move a message; returns when its sender's line is free."""
        takes, leaves = self.link.a_byte * size, max(now, self.out[rank])
        self.out[rank] = leaves + takes
        self.into[to] = max(leaves + self.link.latency, self.into[to]) + takes
        there = self.exchanges[to, tick, name]
        there.missing -= 1
        there.over = max(there.over, self.into[to])
        self._end(to, tick, name)
        return self.out[rank]

    def _end(self, rank: int, tick: int, name: str) -> None:
        """Let a rank go on that waits for nothing any more."""
        own = self.exchanges.get((rank, tick, name))
        if own and own.waits >= 0 and own.missing == 0:
            end = max(own.waits, own.over)
            self._did(rank, f"wait {name}", own.waits, end)
            del self.exchanges[rank, tick, name]
            self._next(end, rank, tick, self.at[rank][1] + 1)
