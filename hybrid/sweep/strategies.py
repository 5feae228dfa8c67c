"""Which trials a sweep has, and how far each goes: a function of its file alone."""

import itertools
from typing import Any, NamedTuple

import numpy as np

from .asked import Asked
from .file import Sweep

REPEATS = 1000  # draws in a row that bring nothing new, after which there is nothing new


class Rung(NamedTuple):
    """A part of a sweep: so many trials at most, the best so far, go on to this length; None: to their end."""

    length: int | None
    most: int


def trials(sweep: Sweep) -> list[dict[str, Any]]:
    """The varied options of every trial; those of a sweep of fewer trials come first.

    Raises ValueError where there are not so many, and for a trial that `hybrid train` would refuse.
    """
    found = _grid(sweep) if sweep.strategy == "grid" else _drawn(sweep)
    asked = Asked(sweep.model)
    for number, varied in enumerate(found, 1):
        try:
            asked.chosen(sweep.fixed | varied)
        except ValueError as error:
            raise ValueError(f"trial {number} ({said(varied)}): {error}") from None
    return found


def rungs(sweep: Sweep) -> list[Rung]:
    """The parts of a sweep, in order. Halving has several, each a factor longer for a factor fewer of the trials.

    Li et al. 2018, "Hyperband", section 3; Jamieson and Talwalkar 2016, "Non-stochastic Best Arm Identification".
    """
    if sweep.strategy != "halving":
        return [Rung(None, len(trials(sweep)))]
    asked = Asked(sweep.model)
    full = asked.chosen(sweep.fixed | trials(sweep)[0])[asked.length]
    length, factor, count = (sweep.numbers[name] for name in ("first", "factor", "trials"))
    if length > full:
        raise ValueError(f"[sweep] first: found {length}, expected at most {full}, the {asked.length} of a whole trial")
    found = []
    while length < full and count > 1:
        found.append(Rung(length, count))
        length, count = length * factor, max(count // factor, 1)
    return [*found, Rung(full, count)]


def said(varied: dict[str, Any]) -> str:
    """The varied options of a trial, for a person."""
    return ", ".join(
        f"{name} {str(value).lower() if isinstance(value, bool) else value}" for name, value in varied.items()
    )


def _grid(sweep: Sweep) -> list[dict[str, Any]]:
    """Every combination; the last option changes first."""
    combined = itertools.product(*(choice.outermost for choice in sweep.vary.values()))
    return [dict(zip(sweep.vary, values, strict=True)) for values in combined]


def _drawn(sweep: Sweep) -> list[dict[str, Any]]:
    """As many as are asked for, no two the same."""
    rng = np.random.default_rng(sweep.numbers["seed"])
    found: dict[str, dict[str, Any]] = {}
    repeated = 0
    while len(found) < sweep.numbers["trials"]:
        varied = {name: space.draw(rng) for name, space in sweep.vary.items()}
        repeated = repeated + 1 if repr(varied) in found else 0
        found.setdefault(repr(varied), varied)
        if repeated == REPEATS:
            raise ValueError(
                f"[sweep] trials: found {sweep.numbers['trials']}, expected at most {len(found)}: [vary] offers no more"
            )
    return list(found.values())
