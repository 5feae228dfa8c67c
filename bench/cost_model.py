"""A model of what a step costs: amounts of a few things, such as bytes and operations, each with seconds of its own.

The seconds are found by non-negative least squares of the shares by which the model misses what was measured, so that a step
of a microsecond counts as much as one of a second. How far it may be trusted is told by points that it was not fitted to.
"""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np
from scipy import optimize

Amounts = Mapping[str, float]
Point = tuple[Amounts, float]  # what a step takes, and its measured seconds


class Model(NamedTuple):
    """Seconds of one of each thing, by name, and what is known of the error.

    errors  of each point, by which share of what was measured the model of all other points misses it; empty for a single point
    """

    constants: dict[str, float]
    errors: tuple[float, ...]

    def seconds(self, amounts: Amounts) -> float:
        """Of a step that takes so much."""
        return sum(self.constants[name] * amount for name, amount in amounts.items())

    @property
    def error(self) -> float | None:
        """The median of the errors, without their signs; None where there are none."""
        return float(np.median(np.abs(self.errors))) if self.errors else None

    @property
    def worst(self) -> float | None:
        """The largest of them."""
        return float(np.max(np.abs(self.errors))) if self.errors else None


def fit(points: Sequence[Point]) -> Model:
    """The model of measured points; all have amounts of the same things.

    Raises ValueError where there are none.
    """
    if not points:
        raise ValueError("points: found none, expected at least one measured step")
    others = [[*points[:left], *points[left + 1 :]] for left in range(len(points))] if len(points) > 1 else []
    errors = tuple(
        Model(_constants(rest), ()).seconds(amounts) / seconds - 1
        for rest, (amounts, seconds) in zip(others, points, strict=False)
    )
    return Model(_constants(points), errors)


def _constants(points: Sequence[Point]) -> dict[str, float]:
    """Columns are scaled to be alike: seconds of an operation and of a batch are ten orders apart."""
    names = list(points[0][0])
    shares = np.array([[amounts[name] / seconds for name in names] for amounts, seconds in points])
    scale = np.linalg.norm(shares, axis=0)
    scale[scale == 0] = 1.0
    found, _ = optimize.nnls(shares / scale, np.ones(len(points)))
    return dict(zip(names, map(float, found / scale), strict=True))
