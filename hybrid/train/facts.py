"""What a checkpoint tells of a run, beside its model: the feed and the progress; checked as they are read.

A checkpoint may be whole and not of a run: a user's own save of a model has facts of his own, and a stranger may write any.
"""

import contextlib
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from ..storage import checkpoint
from .job import Job
from .progress import CLOCKS, SPENT

SHOWN = 60  # letters of what was found
LARGEST = 2**63  # beyond it sums with floats overflow


class Shape(NamedTuple):
    """What a value may be: in words, and as a test."""

    said: str
    fits: Callable[[Any], bool]


def _number(value: Any) -> bool:
    return isinstance(value, float) or (type(value) is int and abs(value) < LARGEST)


def _numbers(count: int) -> Shape:
    def fit(value: Any) -> bool:
        return isinstance(value, list) and len(value) == count and all(map(_number, value))

    return Shape(f"a list of {count} numbers", fit)


OBJECT = Shape("an object", lambda value: isinstance(value, dict))
LIST = Shape("a list", lambda value: isinstance(value, list))
TEXT = Shape("a string", lambda value: isinstance(value, str))
WHOLE = Shape("a whole number of at least 0", lambda value: type(value) is int and 0 <= value < LARGEST)
NUMBER = Shape("a number", _number)
FIGURE = Shape("a number or null", lambda value: value is None or _number(value))

# what earlier versions do not have, or not yet at the beginning
PROGRESS = {
    **dict.fromkeys(("examples", "clocked", *SPENT, *CLOCKS), NUMBER),
    "worse": WHOLE,
    "loss": FIGURE,
}
BEST = {"tick": WHOLE, "figure": TEXT, "value": NUMBER}
ENGINES = ("factors", "language", "words")  # models whose points are those of an engine


def check(facts: Any, job: Job, kind: str, model: Any, source: Path) -> None:
    """ValueError, naming the file, unless a checkpoint's facts are those of a run of this kind, so that its job can go on.

    facts   as they were read; those of earlier versions have less in them, and pass
    source  the checkpoint that they were read from: its folder or its JSON file
    """
    with _named(source):
        _have("", facts, {"feed": OBJECT, "progress": OBJECT})
        progress = facts["progress"]
        there = {name: shape for name, shape in PROGRESS.items() if name in progress}
        _have("progress", progress, {"curve": LIST} | there)
        _check_best(progress)
        points = {"seconds": NUMBER, job.unit: WHOLE} | _figures(job, kind, model)
        _check_points(progress, points)
        if kind == "pvm":
            _check_frames(progress, model)


def curve_of(facts: Any, model: Any, source: Path) -> list[dict[str, Any]]:
    """The curve of a Predictive Vision Model's run, [] for a save of a user's own; ValueError, naming the file, for facts that
    hold none.
    """
    with _named(source):
        _have("", facts, {})
        if facts.get("progress") is None:
            return []
        _have("", facts, {"progress": OBJECT})
        _have("progress", facts["progress"], {"curve": LIST})
        _check_points(facts["progress"], {"step": WHOLE, "prediction": FIGURE, "last_frame": FIGURE})
        _check_frames(facts["progress"], model)
    curve: list[dict[str, Any]] = facts["progress"]["curve"]
    return curve


@contextlib.contextmanager
def _named(source: Path) -> Iterator[None]:
    """While facts are checked: what is refused names the file, and says what to do."""
    try:
        yield
    except ValueError as failure:
        raise ValueError(f"{_file(source)}: {failure}; expected a checkpoint of a run{_remedy(source)}") from None


def _check_best(progress: Mapping[str, Any]) -> None:
    """The best point, and how many came since: no more than the curve has."""
    if progress.get("best") is not None:
        _have("progress.best", progress["best"], BEST)
    made = len(progress["curve"])
    if progress.get("worse", 0) > made:
        raise ValueError(f"progress.worse: found {progress['worse']}, expected at most {made}, the points of the curve")


def _check_points(progress: Mapping[str, Any], shapes: Mapping[str, Shape]) -> None:
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
    """Of a Predictive Vision Model: what it has summed up since the last point; and frames were compared, or none was."""
    if "since" in progress:
        sums = dict.fromkeys(("prediction", "last_frame"), NUMBER) | dict.fromkeys(("ticks", "pairs"), WHOLE)
        _have("progress.since", progress["since"], sums | {"error": _numbers(len(model.config.grids))})
    for at, point in enumerate(progress["curve"]):
        if point["prediction"] is not None:
            _have(f"progress.curve[{at}]", point, {"last_frame": NUMBER})


def _have(name: str, found: Any, shapes: Mapping[str, Shape]) -> None:
    """ValueError unless what was found under a name is an object that has all these, in their shapes."""
    if not isinstance(found, dict):
        raise ValueError(f"{name or 'facts'}: found {_shown(found)}, expected an object")
    for key, shape in shapes.items():
        if key not in found:
            raise ValueError(f"{f'{name}.{key}'.lstrip('.')}: found none, expected {shape.said}")
        if not shape.fits(found[key]):
            raise ValueError(f"{f'{name}.{key}'.lstrip('.')}: found {_shown(found[key])}, expected {shape.said}")


def _shown(value: Any) -> str:
    """A value in few letters; the content of a list or an object may be anything, and is left out."""
    if isinstance(value, list | dict):
        return f"{'a list' if isinstance(value, list) else 'an object'} of {len(value)}"
    said = repr(value) if not isinstance(value, int) or abs(value) < LARGEST else "a number beyond 2^63"
    return said if len(said) <= SHOWN else f"{said[:SHOWN]}..."


def _file(source: Path) -> Path:
    return source / checkpoint.LATEST if source.is_dir() else source


def _remedy(source: Path) -> str:
    """How the run may go on all the same: from the save before, where this is the last."""
    if not (source.is_dir() and (source / checkpoint.PREVIOUS).exists()):
        return ", as hybrid train writes it"
    return f", as hybrid train writes it: hybrid train --resume {source.parent} --previous goes on from the save before"
