"""How far a run has come: its clocks, its examples, its curve."""

import contextlib
import time
from collections.abc import Iterator
from typing import Any

CLOCKS = ("seconds", "processor_seconds")  # of training


class Progress:
    """What a run has done so far; `facts` is JSON-able and travels in the checkpoint.

    examples            learned from
    seconds             of training alone: without evaluating, saving, and the first tick of a start, which compiles kernels
    processor_seconds   the same over all threads, waiting ones that spin included
    evaluation_seconds  of measuring alone
    clocked             examples learned from in `seconds`
    curve               the points so far, each with the tick, the clocks and figures of the model
    """

    def __init__(self, facts: dict[str, Any] | None = None):
        begun: dict[str, Any] = {"examples": 0, "curve": []}
        begun |= dict.fromkeys((*CLOCKS, "evaluation_seconds"), 0.0)
        self.facts = begun | (facts or {})
        self.facts.setdefault("clocked", self.facts["examples"])
        self._start: tuple[float, float] | None = None

    def note(self, examples: int) -> None:
        """Count a finished tick, and start the clocks at the first."""
        self.facts["examples"] += examples
        if self._start is None:
            self._start = _clocks()
        else:
            self.facts["clocked"] += examples

    def pause(self) -> None:
        """Stop the clocks of training, if they run."""
        if self._start is not None:
            for name, now, start in zip(CLOCKS, _clocks(), self._start, strict=True):
                self.facts[name] += now - start

    def go_on(self) -> None:
        """Start the clocks of training again, if they ran before."""
        if self._start is not None:
            self._start = _clocks()

    @contextlib.contextmanager
    def evaluating(self) -> Iterator[None]:
        """While the model is measured: the clock of evaluation runs. Those of training are to be stopped."""
        start = time.perf_counter()
        yield
        self.facts["evaluation_seconds"] += time.perf_counter() - start

    def point(self, unit: str, tick: int, figures: dict[str, Any]) -> dict[str, Any]:
        """Add a point to the curve: figures of the model after so many ticks. The clocks are to be stopped."""
        known = {name: self.facts[name] for name in (*CLOCKS, "evaluation_seconds", "examples")}
        point = {unit: tick} | known | figures
        self.facts["curve"].append(point)
        return point

    @property
    def rate(self) -> float:
        """Examples a second of training."""
        seconds: float = self.facts["seconds"]
        return self.facts["clocked"] / seconds if seconds else 0.0


def _clocks() -> tuple[float, float]:
    return time.perf_counter(), time.process_time()
