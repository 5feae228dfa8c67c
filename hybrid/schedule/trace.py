"""Traces of all stages on one clock: times per stage, the overlap figure, a Chrome trace for Perfetto."""

import json
import threading
from collections import defaultdict, deque
from pathlib import Path
from typing import Any, NamedTuple


class Interval(NamedTuple):
    """One stage of one micro-batch on one queue; times in seconds of time.perf_counter."""

    queue: str
    stage: str
    tick: int
    micro: int
    start: float
    end: float


class Trace:
    """Total times of all stages, and the most recent intervals.

    keep  number of intervals kept; it bounds the memory of a long run

    Queues call `note` from their own threads. With more than one step, totals exclude the first, in which kernels are loaded
    or compiled, which may take a minute.
    """

    def __init__(self, keep: int = 4096):
        self.recent: deque[Interval] = deque(maxlen=keep)
        self._lock = threading.Lock()
        self._first = True
        self.clear()

    def clear(self) -> None:
        self.recent.clear()
        self._start()

    def _start(self) -> None:
        self.seconds: dict[tuple[str, str], float] = defaultdict(float)  # (queue, stage)
        self.wall = 0.0
        self.ticks = 0

    def next_tick(self) -> None:
        """Marks the start of another step."""
        if self._first and self.ticks:
            self._first = False
            self._start()

    def note(self, queue: str, stage: str, tick: int, micro: int, start: float, end: float) -> None:
        """Records that a stage of a micro-batch ran on a queue from start to end."""
        with self._lock:
            self.recent.append(Interval(queue, stage, tick, micro, start, end))
            self.seconds[queue, stage] += end - start

    def summary(self) -> dict[str, Any]:
        """Returns seconds of every stage and queue, wall seconds, overlap and efficiency.

        overlap = (sum - wall) / (sum - longest), over the seconds of all queues and of the busiest one. It is 1 if the wall
        time equals that of the busiest queue, 0 if nothing ran concurrently. It compares queues, since stages on one queue
        cannot overlap. efficiency = longest / wall.
        """
        stages: dict[str, float] = defaultdict(float)
        queues: dict[str, float] = defaultdict(float)
        for (queue, stage), seconds in self.seconds.items():
            stages[stage] += seconds
            queues[queue] += seconds
        total, longest = sum(queues.values()), max(queues.values(), default=0.0)
        hidden, hideable = total - self.wall, total - longest
        return {
            "ticks": self.ticks,
            "wall": self.wall,
            "stages": dict(stages),
            "queues": dict(queues),
            "overlap": max(hidden / hideable, 0.0) if hideable > 1e-3 * total else 0.0,
            "efficiency": longest / self.wall if self.wall else 0.0,
        }

    def write_chrome(self, path: str | Path) -> None:
        """Writes the kept intervals as Chrome trace JSON, for ui.perfetto.dev and chrome://tracing."""
        from ..storage import files

        tracks = {name: number for number, name in enumerate(sorted({i.queue for i in self.recent}), 1)}
        origin = min((i.start for i in self.recent), default=0.0)
        events: list[dict[str, Any]] = [
            {"ph": "M", "pid": 1, "tid": tid, "name": "thread_name", "args": {"name": name}}
            for name, tid in tracks.items()
        ]
        for i in self.recent:
            times = {"ts": 1e6 * (i.start - origin), "dur": 1e6 * (i.end - i.start)}
            event = {"ph": "X", "pid": 1, "tid": tracks[i.queue], "name": i.stage} | times
            events.append(event | {"args": {"tick": i.tick, "micro-batch": i.micro}})
        files.write(path, [json.dumps({"traceEvents": events, "displayTimeUnit": "ms"}).encode()])


def line(facts: dict[str, Any]) -> str:
    """Returns a summary as one printed line, in milliseconds per step."""
    if not facts["ticks"]:
        return "no step was timed"
    ticks = facts["ticks"]
    stages = ", ".join(f"{name} {1e3 * seconds / ticks:.2f}" for name, seconds in facts["stages"].items())
    return (
        f"{stages} ms per step; wall {1e3 * facts['wall'] / ticks:.2f}; "
        f"overlap {facts['overlap']:.2f}, efficiency {facts['efficiency']:.2f}"
    )
