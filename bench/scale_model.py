"""The model of scale: measured figures in, predicted seconds of a tick out, and what bounds it."""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from bench.scale_programs import Curve
from bench.scale_simulation import FOREVER, Compute, Link, Program, simulate

BEYOND = 0.05  # of a tick: what saves less does not bound it
HIDDEN = 0.5  # an exchange of which more is hidden beside compute moves without its ranks


class Prediction(NamedTuple):
    """A tick on so many ranks, as the model predicts it.

    seconds     of the tick
    speedup     over one rank; in weak scaling in work a second
    efficiency  of that, a rank
    bound       what bounds it: compute, latency, bandwidth, imbalance, what all ranks repeat
    """

    ranks: int
    seconds: float
    speedup: float
    efficiency: float
    bound: str


def link(halos: Sequence[dict[str, Any]]) -> Link:
    """The link that halos were measured on, see bench/ranks_messages.py.

    To tell MPI of a message is its overhead, of those that go, which are first, and those that come. What follows the first
    half is a line through the bytes, fitted to shares of the times.
    """
    overhead = float(np.median([one["start"] / (2 * one["neighbours"]) for one in halos]))
    rest = np.array([max(float(np.median(one["samples"])) - one["start"] / 2, 1e-9) for one in halos])
    sizes = np.array([float(one["bytes"] * one["neighbours"]) for one in halos])
    latency, a_byte = fit(sizes, rest)
    large = [one["bytes"] for one in halos if one["hidden"] < HIDDEN]
    small = [one["bytes"] for one in halos if one["bytes"] < min(large, default=FOREVER)]
    return Link(overhead, latency, a_byte, alone=FOREVER if not large else max(small, default=0))


def fit(sizes: np.ndarray, seconds: np.ndarray) -> tuple[float, float]:
    """a and b, neither below 0, of a + b size, by least squares of the shares by which it misses the seconds."""
    along, level = sizes / seconds, 1 / seconds
    (a, b), *_ = np.linalg.lstsq(np.column_stack([level, along]), np.ones(len(sizes)), rcond=None)
    if a < 0:
        return 0.0, float(along.sum() / (along**2).sum())
    if b < 0:
        return float(level.sum() / (level**2).sum()), 0.0
    return float(a), float(b)


def curve(points: Sequence[tuple[float, float]]) -> Curve:
    """Of measured points (amount, seconds), in ascending order of the amounts, each amount once."""
    found = dict(sorted(points))
    return Curve(tuple(found), tuple(found.values()))


def bound(programs: Sequence[Program], now: float, link: Link, evenly: Sequence[Program] | None = None) -> str:
    """What a tick would be shortest without: latency, bandwidth, imbalance, what all ranks repeat; else it is compute.

    now     seconds of the tick as it is
    evenly  the programs of ranks that share what all of them repeat; None: they repeat nothing
    """
    instead = {
        "latency": simulate(programs, link._replace(overhead=0.0, latency=0.0)).seconds,
        "bandwidth": simulate(programs, link._replace(a_byte=0.0)).seconds,
    }
    if evenly:
        instead["what all ranks repeat"] = simulate(evenly, link).seconds
    else:
        instead["imbalance"] = simulate(balanced(programs), link).seconds
    best = min(instead, key=instead.__getitem__)
    return best if now - instead[best] > BEYOND * now else "compute"


def balanced(programs: Sequence[Program]) -> list[Program]:
    """The same with all compute shared evenly, step by step."""
    mean: dict[str, float] = {}
    for program in programs:
        for step in program:
            if isinstance(step, Compute):
                mean[step.name] = mean.get(step.name, 0.0) + step.seconds / len(programs)
    return [
        [step._replace(seconds=mean[step.name]) if isinstance(step, Compute) else step for step in program]
        for program in programs
    ]


def predict(
    of: Callable[[int], list[Program]],
    link: Link,
    ranks: Sequence[int],
    evenly: Callable[[int], list[Program]] | None = None,
    weak: bool = False,
) -> list[Prediction]:
    """Ticks on numbers of ranks.

    of      the programs of a number of ranks; of one rank, too
    evenly  those that share what all repeat, where they repeat something
    weak    whether so many ranks have so many times the work
    """
    one, found = simulate(of(1), Link()).seconds, []
    for count in ranks:
        programs = of(count)
        seconds = simulate(programs, link).seconds
        speedup = one / seconds * (count if weak else 1)
        by = bound(programs, seconds, link, evenly(count) if evenly else None)
        found.append(Prediction(count, seconds, speedup, speedup / count, by))
    return found
