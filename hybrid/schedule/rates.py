"""Schedules of learning rates: a factor on all rates of an engine per step, with warm-up."""

import math
from collections.abc import Callable
from dataclasses import dataclass

from .. import check

LEAST = 1e-4  # minimum factor, so that the last steps still train
CUTS, CUT = (1 / 2, 3 / 4), 0.1


@dataclass(frozen=True)
class RateSchedule:
    """The schedule of all learning rates over a run.

    name    "constant"; "linear", as in word2vec: from 1 to 0; "cosine": half a wave from 1 to 0 (Loshchilov and Hutter 2017,
            arXiv:1608.03983); "step": 0.1 after half of the steps, 0.01 after three quarters (He et al., arXiv:1512.03385)
    warmup  steps in which the factor rises linearly to 1; the schedule covers the remaining steps

    Decay to 0 ends at LEAST. The factor depends only on the step and the length of the run: a resumed run has the same
    factors, and an extended run those of the longer run from then on.

    Raises ValueError for an unknown name, and for a warm-up that is not a whole number of at least 0.
    """

    name: str = "linear"
    warmup: int = 0

    def __post_init__(self) -> None:
        check.choice("schedule", self.name, tuple(SCHEDULES))
        check.whole("warmup", self.warmup, 0)

    def over(self, ticks: int) -> Callable[[int], float]:
        """Returns a function from step number, counted from 0, to schedule factor, for a run of `ticks` steps."""
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
