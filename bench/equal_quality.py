"""Seconds that output layers need to a perplexity, from the committed records of trainings: `bench quality` and `bench large`.

A point of `bench quality` is a training of its own, whose schedule ends with it; one of `bench large` is a look at a training
that goes on. Between two points a line is drawn, on logarithmic axes; beyond the last one nothing is said.
"""

import itertools
import math
import statistics
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from bench import quality_tables, report

FILES = ("quality.jsonl", "large.jsonl")
WORDS = 33_278  # classes of the problem "language" of `bench quality`: the words of WikiText-2 as published
CLOCKS = {"quality": "seconds on {} threads", "large": "seconds of one processor"}
NEAR = (1.05, 1.25)  # times the lowest perplexity that anybody reached: what others are asked to reach
OTHERS = ("Kneser-Ney 5-gram",)  # contenders that have no output layer
LOST = 1e6  # perplexities above this are of trainings that diverged


class Curve(NamedTuple):
    """A contender at so many classes: (seconds, perplexity of validation data), in rising order; clock: which seconds."""

    who: str
    classes: int
    clock: str
    points: tuple[tuple[float, float], ...]

    @property
    def best(self) -> tuple[float, float]:
        """The point of the lowest perplexity."""
        return min(self.points, key=lambda point: point[1])

    def seconds_to(self, perplexity: float) -> float | None:
        """When it gets there; at the latest at its first point, where that is there already; None where it never does."""
        for (before, high), (after, low) in itertools.pairwise([(self.points[0][0], math.inf), *self.points]):
            if low <= perplexity:
                if math.isinf(high):
                    return after
                share = math.log(high / perplexity) / math.log(high / low)
                return before * (after / before) ** share
        return None


def committed() -> list[dict[str, Any]]:
    """The records that are kept in the repository."""
    folder = Path(__file__).parent / "results"
    return report.read([str(folder / name) for name in FILES])


def curves(records: Iterable[dict[str, Any]]) -> dict[int, list[Curve]]:
    """By numbers of classes, in rising order; contenders in the order of their records."""
    records = list(records)
    found: dict[int, list[Curve]] = {}
    for row in quality_tables.rows("language", records):
        if row.who in OTHERS:
            continue
        points = sorted((one.seconds, statistics.mean(one.values("valid", "perplexity"))) for one in _whole(row))
        if points:
            clock = CLOCKS["quality"].format(row.lengths[0].records[0]["threads"])
            found.setdefault(WORDS, []).append(Curve(row.who, WORDS, clock, tuple(points)))
    for one in records:
        if one.get("bench") == "large":
            points = sorted(_looks(one["quality"]))
            if points:
                classes = one["params"]["classes"]
                found.setdefault(classes, []).append(Curve(one["who"], classes, CLOCKS["large"], tuple(points)))
    return dict(sorted(found.items()))


def _whole(row: quality_tables.Row) -> list[quality_tables.Length]:
    """Lengths of which no training diverged."""
    return [one for one in row.lengths if len(one.values("valid", "perplexity")) == len(one.records)]


def _looks(quality: dict[str, list[float]]) -> Iterable[tuple[float, float]]:
    """Of names as "after 60 s"."""
    for name, values in quality.items():
        if name.startswith("after ") and (perplexity := statistics.mean(values)) < LOST:
            yield float(name.split()[1]), perplexity


def targets(curves: Sequence[Curve]) -> list[float]:
    """Perplexities that contenders at the same classes are asked to reach, the hardest first."""
    lowest = min(one.best[1] for one in curves)
    return [times * lowest for times in NEAR]
