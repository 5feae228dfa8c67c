"""By how much all rates of an engine are scaled in a tick: how they fall over a run, after a warm-up."""

import math
from dataclasses import dataclass

LEAST = 1e-4  # so that the last ticks still learn
CUTS, CUT = (1 / 2, 3 / 4), 0.1


@dataclass(frozen=True)
class Scale:
    """A schedule of so many ticks.

    schedule  "constant"; "linear", as in word2vec: from 1 to 0; "cosine": half a wave from 1 to 0 (Loshchilov and Hutter
              2017, arXiv:1608.03983); "step": a tenth after half of the ticks and a hundredth after three quarters
              (He et al. 2016, arXiv:1512.03385)
    warmup    ticks in which the scale rises linearly to 1 before the schedule begins; the schedule takes the ticks left

    What falls to 0 ends at LEAST. A scale is a function of the tick and of the length of the run alone: a run that stops and
    goes on has the same, and one that is extended has that of the longer run from there on.
    """

    schedule: str
    ticks: int
    warmup: int = 0

    def __call__(self, tick: int) -> float:
        """In this tick, counted from 0."""
        if tick < self.warmup:
            return (tick + 1) / self.warmup
        at, over = tick - self.warmup, max(self.ticks - self.warmup, 1)
        return SCHEDULES[self.schedule](at / over)


def _constant(part: float) -> float:
    return 1.0


def _linear(part: float) -> float:
    return max(1 - part, LEAST)


def _cosine(part: float) -> float:
    return max((1 + math.cos(math.pi * min(part, 1))) / 2, LEAST)


def _step(part: float) -> float:
    return CUT ** sum(part >= cut for cut in CUTS)


SCHEDULES = {"constant": _constant, "linear": _linear, "cosine": _cosine, "step": _step}
