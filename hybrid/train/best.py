"""The best model of a run so far, by a figure that is measured while it learns; and when to stop waiting for a better one."""

import math
from collections.abc import Mapping
from typing import Any

from .job import Watched


class Best:
    """Follows the watched figure of a curve.

    watched   None: nothing is followed
    patience  how many points in a row may bring nothing better; 0: any number
    facts     JSON-able, travels in the checkpoint: "best" holds the tick, the figure's name and its value, "worse" the
              points since
    """

    def __init__(self, watched: Watched | None, patience: int, facts: dict[str, Any]):
        self._watched, self._patience, self._facts = watched, patience, facts
        facts.setdefault("worse", 0)

    def take(self, tick: int, point: Mapping[str, Any]) -> bool:
        """Whether this point of the curve is better than all before it."""
        if self._watched is None or (value := point.get(self._watched.name)) is None:
            return False
        best = self._facts.get("best")
        if not self._watched.better(value, best and best["value"]):
            self._facts["worse"] += 1
            return False
        self._facts |= {"best": {"tick": tick, "figure": self._watched.name, "value": value}, "worse": 0}
        return True

    @property
    def over(self) -> bool:
        """Whether nothing better has come for too long."""
        worse: int = self._facts["worse"]
        return 0 < self._patience <= worse

    def said(self) -> dict[str, Any]:
        """The best point, for a report; and why the run ended before its end, if that is so."""
        best = self._facts.get("best")
        found = {"best": f"{best['figure']} {best['value']:.4g} at {best['tick']:,}"} if best else {}
        if self.over:
            found["stopped early"] = f"nothing better in the last {self._facts['worse']} points of the curve"
        return found


def sayable(figures: Mapping[str, Any]) -> dict[str, Any]:
    """Figures as JSON can say them: a NaN, which a figure of nothing is, becomes null."""
    return {name: None if isinstance(value, float) and math.isnan(value) else value for name, value in figures.items()}
