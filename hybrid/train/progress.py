"""The progress of a run: its clocks, its examples, its curve."""

import contextlib
import time
from collections.abc import Iterator
from typing import Any

CLOCKS = ("seconds", "processor_seconds")  # of training
SPENT = ("seconds", "evaluation_seconds", "saving_seconds", "starting_seconds")  # they add up to the time of the run


class Progress:
    """What a run has done so far; `facts` is JSON-able and is saved in the checkpoint.

    One clock of `SPENT` runs at a time, if any: the one named by `spending`, or that of training from a tick on.

    examples            learned from
    seconds             of training alone
    processor_seconds   of training, summed over all threads, including waiting threads that spin
    evaluation_seconds  of evaluation
    saving_seconds      of writing checkpoints, without the last one before a stop
    starting_seconds    up to the end of the first step of each start, which compiles kernels
    clocked             examples learned from in `seconds`
    curve               the points so far, each with the tick, the clocks and figures of the model
    """

    def __init__(self, facts: dict[str, Any] | None = None):
        begun: dict[str, Any] = {"examples": 0, "curve": []} | dict.fromkeys((*SPENT, *CLOCKS), 0.0)
        self.facts = begun | (facts or {})
        self.facts.setdefault("clocked", self.facts["examples"])
        self._clock: str | None = None
        self._since = _now()

    @contextlib.contextmanager
    def spending(self, clock: str) -> Iterator[None]:
        """While something else is done than training: its clock runs instead."""
        before = self._clock
        self._switch(clock)
        try:
            yield
        finally:
            self._switch(before)

    def note(self, examples: int) -> None:
        """Count a finished tick."""
        self.facts["examples"] += examples
        if self._clock == "seconds":
            self.facts["clocked"] += examples
        else:
            self._switch("seconds")

    def point(self, unit: str, tick: int, figures: dict[str, Any]) -> dict[str, Any]:
        """Add a point to the curve: figures of the model after so many ticks."""
        self._switch(self._clock)
        known = {name: self.facts[name] for name in (*CLOCKS, "evaluation_seconds", "examples")}
        point = {unit: tick} | known | figures
        self.facts["curve"].append(point)
        return point

    @property
    def rate(self) -> float:
        """Examples a second of training."""
        seconds: float = self.facts["seconds"]
        return self.facts["clocked"] / seconds if seconds else 0.0

    def _switch(self, clock: str | None) -> None:
        """Add what has passed to the clock that ran, and let another one run, if any."""
        now = _now()
        if self._clock:
            passed, processor = (end - start for end, start in zip(now, self._since, strict=True))
            self.facts[self._clock] += passed
            if self._clock == "seconds":
                self.facts["processor_seconds"] += processor
        self._clock, self._since = clock, now


def _now() -> tuple[float, float]:
    return time.perf_counter(), time.process_time()
