"""The progress of a run as saved in checkpoints: clocks, examples, curve; and its validation."""

import contextlib
import json
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from ..storage import checkpoint
from .job import Job

CLOCKS = ("seconds", "processor_seconds")  # of training
SPENT = ("seconds", "evaluation_seconds", "saving_seconds", "starting_seconds")  # sum to the time of the run


class Progress:
    """The progress of a run; `facts` is JSON-able and saved in the checkpoint.

    At most one clock of `SPENT` runs at a time: the one named by `spending`, or, from a step on, that of training.

    examples            number trained on
    seconds             of training alone
    processor_seconds   of training, summed over all threads, including spinning ones
    evaluation_seconds  of evaluation
    saving_seconds      of writing checkpoints, except the last before a stop
    starting_seconds    up to the end of the first step of each start, which compiles kernels
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


LETTERS = 60  # maximum length of a value in a message
LARGEST = 2**63  # beyond it sums with floats overflow
WORDS = {dict: "an object", str: "a string", int: "a whole number of at least 0", float: "a number"}
WORDS |= {list: "a list", type(None): "a number or null"}
ENGINES = ("factors", "language", "words")  # models whose points are those of an engine

# Entries that may be missing at the start of a run, with a sample value; a tuple stands for a list of equal length.
OPTIONAL: dict[str, Any] = dict.fromkeys(("examples", "clocked", *SPENT, *CLOCKS), 0.0) | {"worse": 0, "loss": None}
BEST = {"tick": 0, "figure": "", "value": 0.0}


def check(facts: Any, job: Job, kind: str, model: Any, source: Path) -> None:
    """Raises ValueError, with the file, unless a checkpoint's facts fit a run of this kind and its job can resume it.

    A sound checkpoint may not belong to a run: user saves have other facts, and untrusted files may have any.

    source  the checkpoint's folder or JSON file
    """
    point: dict[str, Any] = {"seconds": 0.0, job.unit: 0}  # plus figures, unknown for models of other distributions
    if kind == "pvm":
        point |= {"error": (0.0,) * len(model.config.grids), "prediction": None, "last_frame": None}
    elif kind in (*ENGINES, "labels"):
        point |= {"examples": 0.0, job.drawn: None} | ({"loss": None} if kind in ENGINES else {})
    try:
        _check("", facts, {"feed": {}, "progress": {}})
        _check_progress(facts["progress"], point, model)
    except ValueError as failure:
        file, remedy = source, ""
        if source.is_dir():
            file = source / checkpoint.LATEST
            if (source / checkpoint.PREVIOUS).exists():
                remedy = f": hybrid train --resume {source.parent} --previous goes on from the save before"
        text = f"{file}: {failure}; expected a checkpoint of a run, as hybrid train writes it{remedy}"
        raise ValueError(text) from None


def check_feed(job: Job, saved: dict[str, Any], tick: int, folder: Path) -> None:
    """Raises ValueError unless the job's feed matches the checkpoint's; it may be longer, and must cover `tick` steps."""
    ours, length = json.loads(json.dumps(job.feed.describe())), job.length
    if ours | {length: None} != saved | {length: None}:
        raise ValueError(f"feed: the data or its options differ from those of the checkpoint in {folder}")
    if tick > len(job.feed):
        least = -(-tick * job.reached // len(job.feed))
        raise ValueError(f"--{length}: found {job.reached}, expected at least {least}, which the run has begun or made")


def _check_progress(progress: dict[str, Any], point: dict[str, Any], model: Any) -> None:
    pattern = {name: kind for name, kind in OPTIONAL.items() if name in progress}
    if progress.get("best") is not None:
        pattern["best"] = BEST
    if "since" in progress and "prediction" in point:  # sums of a Predictive Vision Model since its last point
        errors = (0.0,) * len(model.config.grids)
        pattern["since"] = {"prediction": 0.0, "last_frame": 0.0, "ticks": 0, "pairs": 0, "error": errors}
    _check("progress", progress, {"curve": [point]} | pattern)
    curve = progress["curve"]
    for at, one in enumerate(curve):
        if one.get("prediction") is not None:  # frames were compared, so both figures exist
            _check(f"progress.curve[{at}]", one, {"last_frame": 0.0} if "last_frame" in point else {})
    if (worse := progress.get("worse", 0)) > len(curve):
        raise ValueError(f"progress.worse: found {worse}, expected at most {len(curve)}, the points of the curve")


def _check(name: str, value: Any, pattern: Any) -> None:
    """Raises ValueError unless a value matches the pattern: types, all names, and each list item against its single item."""
    if not _fits(value, pattern):
        words = f"a list of {len(pattern)} numbers" if isinstance(pattern, tuple) else WORDS[type(pattern)]
        raise ValueError(f"{name or 'facts'}: found {_shown(value)}, expected {words}")
    if isinstance(pattern, dict):
        for key, below in pattern.items():
            _check(f"{name}.{key}".lstrip("."), value.get(key, _MISSING), below)
    elif isinstance(pattern, list):
        for at, one in enumerate(value):
            _check(f"{name}[{at}]", one, pattern[0])


def _fits(value: Any, pattern: Any) -> bool:
    if isinstance(pattern, tuple):
        return isinstance(value, list) and len(value) == len(pattern) and all(_fits(one, 0.0) for one in value)
    if pattern is None or isinstance(pattern, float):
        number = isinstance(value, float) or (type(value) is int and abs(value) < LARGEST)
        return number or (pattern is None and value is None)
    return type(value) is type(pattern) and (not isinstance(value, int) or 0 <= value < LARGEST)


_MISSING = object()


def _shown(value: Any) -> str:
    """Returns a short text of a value, without the contents of lists and objects."""
    if value is _MISSING:
        return "none"
    if isinstance(value, list | dict):
        return f"{'a list' if isinstance(value, list) else 'an object'} of {len(value)}"
    text = repr(value) if not isinstance(value, int) or abs(value) < LARGEST else "a number beyond 2^63"
    return text if len(text) <= LETTERS else f"{text[:LETTERS]}..."
