"""By how much all rates of an engine are scaled in a tick: how they fall over a run, after a warm-up."""

import math
from collections.abc import Callable
from dataclasses import dataclass

from .. import check

LEAST = 1e-4  # so that the last ticks still learn
CUTS, CUT = (1 / 2, 3 / 4), 0.1


@dataclass(frozen=True)
class RateSchedule:
    """How all rates fall over a run.

    name    "constant"; "linear", as in word2vec: from 1 to 0; "cosine": half a wave from 1 to 0 (Loshchilov and Hutter
            2017, arXiv:1608.03983); "step": a tenth after half of the ticks and a hundredth after three quarters
            (He et al. 2016, arXiv:1512.03385)
    warmup  ticks in which the scale rises linearly to 1 before the schedule begins; the schedule takes the ticks left

    What falls to 0 ends at LEAST. A scale is a function of the tick and of the length of the run alone: a run that stops and
    goes on has the same, and one that is extended has that of the longer run from there on.

    Raises ValueError for an unknown name, and for a warm-up that is no whole number of at least 0.
    """

    name: str = "linear"
    warmup: int = 0

    def __post_init__(self) -> None:
        check.choice("schedule", self.name, tuple(SCHEDULES))
        check.whole("warmup", self.warmup, 0)

    def over(self, ticks: int) -> Callable[[int], float]:
        """The scale of a tick, counted from 0, of a run of so many."""
        fall, most = SCHEDULES[self.name], max(ticks - self.warmup, 1)
        return lambda tick: (tick + 1) / self.warmup if tick < self.warmup else fall((tick - self.warmup) / most)


def _constant(part: float) -> float:
    return 1.0


def _linear(part: float) -> float:
    return max(1 - part, LEAST)


def _cosine(part: float) -> float:
    return max((1 + math.cos(math.pi * min(part, 1))) / 2, LEAST)


def _step(part: float) -> float:
    return CUT ** sum(part >= cut for cut in CUTS)


SCHEDULES = {"constant": _constant, "linear": _linear, "cosine": _cosine, "step": _step}
