"""Rows that learn where they are visited, of an embedding or a readout: by which rule, and what is kept for each of them."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from . import check
from .contract import Learned, Rule

OPTIMISERS = ("sgd", "row-adagrad", "adagrad")


@dataclass(frozen=True)
class Moves:
    """How rows move in a visit; see `Rule` in hybrid/contract for the formulas.

    optimiser  "sgd"; "row-adagrad": Adagrad with one number a row, which costs next to no memory; "adagrad": with one number
               for each that learns, so the rows take twice the memory
    decay      None, or the decoupled weight decay: a visited row is first multiplied by 1 - rate * decay
    clip       None, or the norm that the gradient of a row in a visit is cut to

    Raises ValueError for another optimiser, a negative decay and a clip that is not above 0.
    """

    optimiser: str = "sgd"
    decay: float | None = None
    clip: float | None = None

    def __post_init__(self) -> None:
        check.choice("optimiser", self.optimiser, OPTIMISERS)
        if self.decay is not None:
            check.number("decay", self.decay, 0)
        if self.clip is not None and not check.number("clip", self.clip, 0):
            raise ValueError("clip: found 0, expected a norm above 0; leave it out to cut nothing")

    def rule(self, rate: float) -> Rule:
        """The rule of a step at this rate."""
        return Rule(rate, self.decay, self.clip)

    def describe(self) -> dict[str, Any]:
        """The arguments that are not the default, so that facts of plain SGD are those of earlier releases."""
        return {name: value for name, value in vars(self).items() if value != getattr(Moves, name)}


def table(rows: int, width: int) -> np.ndarray:
    """Rows of zeros, float32, which begin on a cache line."""
    from cpu import first_touch

    return first_touch.zeros((rows, width), np.float32)


def named(options: Mapping[str, Any], part: str) -> dict[str, Any]:
    """The arguments of Moves from options of the command line, such as `rows_decay` for the part "rows"."""
    found = {name: options.get(f"{part}_{name}") for name in ("optimiser", "decay", "clip")}
    return {name: value for name, value in found.items() if value is not None}


def readout_named(options: Mapping[str, Any]) -> dict[str, Any]:
    """The same of a readout, and whether its rows have biases."""
    return named(options, "readout") | ({"biases": True} if options.get("biases") else {})


def kept(rows: np.ndarray, moves: Moves, biases: bool = False) -> Learned:
    """Rows (R, D) with biases and squares of 0, as far as the rule needs them, on the host."""
    from cpu import aligned

    each, one = moves.optimiser == "adagrad", np.zeros(len(rows), rows.dtype)
    squares = None if moves.optimiser == "sgd" else aligned.zeros(rows.shape if each else rows.shape[:1], rows.dtype)
    return Learned(rows, one if biases else None, squares, one.copy() if each and biases else None)


def numbers(rows: int, width: int, optimiser: str = "sgd", biases: bool = False, **facts: Any) -> int:
    """How many numbers `kept` has, with the rows."""
    each = {"sgd": 0, "row-adagrad": 1, "adagrad": width + biases}.get(optimiser, 0)
    return rows * (width + biases + each)


def first(learned: Learned, count: int) -> Learned:
    """What belongs to the first rows: views."""
    return Learned(*(None if array is None else array[:count] for array in learned))


def mirrored(learned: Learned, device: Any) -> Learned:
    """The same on a device: the same arrays where it shares the host's memory."""
    return Learned(*(None if array is None else device.from_host(array) for array in learned))


def pairs(host: Learned, there: Learned) -> list[tuple[np.ndarray, Any]]:
    """Every array of the host and its counterpart on the device, see hybrid/mirror.py."""
    return [pair for pair in zip(host, there, strict=True) if pair[0] is not None]


def beside(learned: Learned) -> dict[str, np.ndarray]:
    """What is kept beside the rows, by name."""
    arrays = learned._asdict()
    del arrays["rows"]
    return {name: array for name, array in arrays.items() if array is not None}
