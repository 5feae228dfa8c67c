"""The progress of a run as saved in checkpoints: clocks, examples, curve; and its validation."""

import contextlib
import json
import math
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from ..storage import checkpoint
from .job import Job

CLOCKS = ("seconds", "processor_seconds")  # of training
COUNTED = ("examples", "clocked", "worse")
SPENT = ("seconds", "evaluation_seconds", "saving_seconds", "starting_seconds")  # sum to the time of the run


class Progress:
    """The progress of a run; `facts` is JSON-able and saved in the checkpoint.

    At most one clock of `SPENT` runs at a time: the one named by `spending`, or, from a step on, that of training.

    examples            number trained on
    seconds             of training alone
    processor_seconds   of training, summed over all threads, including spinning ones
    evaluation_seconds  of evaluation
    saving_seconds      of writing checkpoints, except the last before a stop
    starting_seconds    up to the end of the first step of each start if that compiles kernels, see `Job`
    clocked             examples trained on during `seconds`
    curve               the points so far, each with the step, clocks and figures
    """

    def __init__(self, facts: dict[str, Any] | None = None):
        begun: dict[str, Any] = {"examples": 0, "curve": []} | dict.fromkeys((*SPENT, *CLOCKS), 0.0)
        self.facts = begun | (facts or {})
        self.facts.setdefault("clocked", self.facts["examples"])
        self._clock: str | None = None
        self._since = _now()

    @contextlib.contextmanager
    def spending(self, clock: str) -> Iterator[None]:
        """A context during which another clock runs instead of training's."""
        before = self._clock
        self._switch(clock)
        try:
            yield
        finally:
            self._switch(before)

    def begin(self) -> None:
        """Starts training's clock before the first step."""
        self._switch("seconds")

    def note(self, examples: int) -> None:
        """Counts a finished step."""
        self.facts["examples"] += examples
        if self._clock == "seconds":
            self.facts["clocked"] += examples
        else:
            self._switch("seconds")

    def point(self, unit: str, tick: int, figures: dict[str, Any]) -> dict[str, Any]:
        """Adds a curve point: the model's figures after `tick` steps."""
        self._switch(self._clock)
        known = {name: self.facts[name] for name in (*CLOCKS, "evaluation_seconds", "examples")}
        point = {unit: tick} | known | figures
        self.facts["curve"].append(point)
        return point

    @property
    def rate(self) -> float:
        """Training examples per second."""
        seconds: float = self.facts["seconds"]
        return self.facts["clocked"] / seconds if seconds else 0.0

    def _switch(self, clock: str | None) -> None:
        """Stops the current clock and starts another one, if any."""
        now = _now()
        if self._clock:
            passed, processor = (end - start for end, start in zip(now, self._since, strict=True))
            self.facts[self._clock] += passed
            if self._clock == "seconds":
                self.facts["processor_seconds"] += processor
        self._clock, self._since = clock, now


def _now() -> tuple[float, float]:
    return time.perf_counter(), time.process_time()


def check(facts: Any, job: Job, source: Path) -> None:
    """Raises ValueError, with the file `source`, unless a checkpoint's facts are those of a run that its job can
    resume. User saves have other facts, and untrusted files may have any."""
    with contextlib.suppress(ArithmeticError, AttributeError, LookupError, TypeError):  # of values of other types
        progress, feed = facts["progress"], facts["feed"]
        numbers = [progress.get(name, 0) for name in (*COUNTED, *SPENT, *CLOCKS)] + [progress.get("loss") or 0]
        numbers += [point[name] for point in progress["curve"] for name in (job.unit, "seconds")]
        if isinstance(feed, dict) and isinstance(progress["curve"], list) and all(map(math.isfinite, numbers)):
            return
    file, remedy = source, ""
    if source.is_dir():
        file = source / checkpoint.LATEST
        if (source / checkpoint.PREVIOUS).exists():
            remedy = f": hybrid train --resume {source.parent} --previous continues from the save before"
    raise ValueError(f"{file}: expected a checkpoint of a run, as hybrid train writes it{remedy}")


def check_feed(job: Job, saved: dict[str, Any], tick: int, folder: Path) -> None:
    """Raises ValueError unless the job's feed matches the checkpoint's; it may be longer, and must cover `tick` steps."""
    ours, length = json.loads(json.dumps(job.feed.describe())), job.length
    if ours | {length: None} != saved | {length: None}:
        raise ValueError(f"feed: the data or its options differ from those of the checkpoint in {folder}")
    if tick > len(job.feed):
        least = -(-tick * job.reached // len(job.feed))
        raise ValueError(
            f"--{length}: found {job.reached}, expected at least {least}, which the run has started or finished"
        )
