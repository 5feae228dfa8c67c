"""The progress of a run, as its checkpoints keep it: clocks, examples, curve; and whether a checkpoint's is sound."""

import contextlib
import json
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from ..storage import checkpoint
from .job import Job

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


LETTERS = 60  # of a value in a message
LARGEST = 2**63  # beyond it sums with floats overflow


class Shape(NamedTuple):
    """What a value may be: in words, and as a test."""

    words: str
    fits: Callable[[Any], bool]


def _number(value: Any) -> bool:
    return isinstance(value, float) or (type(value) is int and abs(value) < LARGEST)


def _numbers(count: int) -> Shape:
    return Shape(
        f"a list of {count} numbers",
        lambda value: isinstance(value, list) and len(value) == count and all(map(_number, value)),
    )


OBJECT = Shape("an object", lambda value: isinstance(value, dict))
LIST = Shape("a list", lambda value: isinstance(value, list))
TEXT = Shape("a string", lambda value: isinstance(value, str))
WHOLE = Shape("a whole number of at least 0", lambda value: type(value) is int and 0 <= value < LARGEST)
NUMBER = Shape("a number", _number)
FIGURE = Shape("a number or null", lambda value: value is None or _number(value))

# what need not be there at the beginning of a run
PROGRESS = dict.fromkeys(("examples", "clocked", *SPENT, *CLOCKS), NUMBER) | {"worse": WHOLE, "loss": FIGURE}
BEST = {"tick": WHOLE, "figure": TEXT, "value": NUMBER}
ENGINES = ("factors", "language", "words")  # models whose points are those of an engine


def check(facts: Any, job: Job, kind: str, model: Any, source: Path) -> None:
    """ValueError, naming the file, unless a checkpoint's facts are those of a run of this kind, which its job can resume.

    A checkpoint may be sound and not of a run: a user's own save of a model has other facts, a stranger may write any.

    source  the checkpoint that they were read from: its folder or its JSON file
    """
    with _named(source):
        _have("", facts, {"feed": OBJECT, "progress": OBJECT})
        progress = facts["progress"]
        _have("progress", progress, {name: shape for name, shape in PROGRESS.items() if name in progress})
        _check_points(progress, {"seconds": NUMBER, job.unit: WHOLE} | _figures(job, kind, model))
        if progress.get("best") is not None:
            _have("progress.best", progress["best"], BEST)
        points = len(progress["curve"])
        if progress.get("worse", 0) > points:
            raise ValueError(
                f"progress.worse: found {progress['worse']}, expected at most {points}, the points of the curve"
            )
        if kind == "pvm":
            _check_frames(progress, model)


def check_feed(job: Job, saved: dict[str, Any], tick: int, folder: Path) -> None:
    """ValueError unless a checkpoint of so many ticks goes on with the job's feed, which may be longer than its own."""
    ours, length = json.loads(json.dumps(job.feed.describe())), job.length
    if ours | {length: None} != saved | {length: None}:
        raise ValueError(f"feed: the data or its options differ from those of the checkpoint in {folder}")
    if tick > len(job.feed):
        least = -(-tick * job.reached // len(job.feed))
        raise ValueError(
            f"--{length}: found {job.reached}, expected at least {least}, which the run has begun or made already"
        )


def curve_of(facts: Any, model: Any, source: Path) -> list[dict[str, Any]]:
    """The curve of a Predictive Vision Model's run, [] for a user's own save; ValueError, naming the file, for other facts."""
    with _named(source):
        _have("", facts, {})
        if facts.get("progress") is None:
            return []
        _have("", facts, {"progress": OBJECT})
        _check_points(facts["progress"], {"step": WHOLE, "prediction": FIGURE, "last_frame": FIGURE})
        _check_frames(facts["progress"], model)
    curve: list[dict[str, Any]] = facts["progress"]["curve"]
    return curve


@contextlib.contextmanager
def _named(source: Path) -> Iterator[None]:
    """While facts are checked: an error names the file, and says how the run can be resumed from the save before."""
    try:
        yield
    except ValueError as failure:
        file, remedy = source, ""
        if source.is_dir():
            file = source / checkpoint.LATEST
            if (source / checkpoint.PREVIOUS).exists():
                remedy = f": hybrid train --resume {source.parent} --previous goes on from the save before"
        said = f"{file}: {failure}; expected a checkpoint of a run, as hybrid train writes it{remedy}"
        raise ValueError(said) from None


def _check_points(progress: Any, shapes: Mapping[str, Shape]) -> None:
    _have("progress", progress, {"curve": LIST})
    for at, point in enumerate(progress["curve"]):
        _have(f"progress.curve[{at}]", point, shapes)


def _figures(job: Job, kind: str, model: Any) -> dict[str, Shape]:
    """The figures that every point of a curve has; of a model of another distribution none are known."""
    if kind == "pvm":
        return {"error": _numbers(len(model.config.grids)), "prediction": FIGURE, "last_frame": FIGURE}
    if kind == "labels":
        return {"examples": NUMBER, job.drawn: FIGURE}
    return {"examples": NUMBER, "loss": FIGURE, job.drawn: FIGURE} if kind in ENGINES else {}


def _check_frames(progress: Mapping[str, Any], model: Any) -> None:
    """Of a Predictive Vision Model: the sums since the last point; each point compares frames with both figures or neither."""
    if "since" in progress:
        sums = dict.fromkeys(("prediction", "last_frame"), NUMBER) | dict.fromkeys(("ticks", "pairs"), WHOLE)
        _have("progress.since", progress["since"], sums | {"error": _numbers(len(model.config.grids))})
    for at, point in enumerate(progress["curve"]):
        if point["prediction"] is not None:
            _have(f"progress.curve[{at}]", point, {"last_frame": NUMBER})


def _have(name: str, value: Any, shapes: Mapping[str, Shape]) -> None:
    """ValueError unless the value of this name is an object that has all these, in their shapes."""
    if not isinstance(value, dict):
        raise ValueError(f"{name or 'facts'}: found {_shown(value)}, expected an object")
    for key, shape in shapes.items():
        if key not in value or not shape.fits(value[key]):
            shown = _shown(value[key]) if key in value else "none"
            raise ValueError(f"{f'{name}.{key}'.lstrip('.')}: found {shown}, expected {shape.words}")


def _shown(value: Any) -> str:
    """A value in few letters; the content of a list or an object may be anything, and is left out."""
    if isinstance(value, list | dict):
        return f"{'a list' if isinstance(value, list) else 'an object'} of {len(value)}"
    text = repr(value) if not isinstance(value, int) or abs(value) < LARGEST else "a number beyond 2^63"
    return text if len(text) <= LETTERS else f"{text[:LETTERS]}..."
