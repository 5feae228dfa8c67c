"""Rows that learn where they are visited, of an embedding or a readout: by which rule, and what is kept for each of them."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from . import check
from .contract import Learned, Rule

OPTIMISERS = ("sgd", "row-adagrad", "adagrad")
STORAGES = ("float32", "bfloat16", "float16")


@dataclass(frozen=True)
class Moves:
    """How rows move in a visit; see `Rule` in hybrid/contract for the formulas.

    optimiser  "sgd"; "row-adagrad": Adagrad with one number a row, which costs next to no memory; "adagrad": with one number
               for each that learns, so the rows take twice the memory
    decay      None, or the decoupled weight decay: a visited row is first multiplied by 1 - rate * decay
    clip       None, or the norm that the gradient of a row in a visit is cut to
    storage    how rows lie in memory: "float32", or in half of that "bfloat16", with 8 bits of precision, or "float16", with
               11, from 6e-8 to 65,504. All is computed in float32, and what is stored is rounded at random, so that small moves
               count in the mean; see cpu/halves.py. Biases and squares are float32

    Raises ValueError for another optimiser or storage, a negative decay and a clip that is not above 0.
    """

    optimiser: str = "sgd"
    decay: float | None = None
    clip: float | None = None
    storage: str = "float32"

    def __post_init__(self) -> None:
        check.choice("optimiser", self.optimiser, OPTIMISERS)
        check.choice("storage", self.storage, STORAGES)
        if self.decay is not None:
            check.number("decay", self.decay, 0)
        if self.clip is not None and not check.number("clip", self.clip, 0):
            raise ValueError("clip: found 0, expected a norm above 0; leave it out to cut nothing")

    def rule(self, rate: float, dice: int | None = None) -> Rule:
        """The rule of a step at this rate; dice: of `Rounding`."""
        return Rule(rate, self.decay, self.clip, dice)

    def table(self, rows: int, width: int) -> np.ndarray:
        """Rows of zeros, which begin on a cache line; in 16 bits uint16 are those of bfloat16, int16 those of float16."""
        from cpu import first_touch, halves

        return first_touch.zeros((rows, width), halves.BITS[self.storage])

    def check_place(self, backend: Any) -> None:
        """ValueError for rows of 16 bits on a GPU."""
        if self.storage != "float32" and not backend.device.host_memory:
            raise ValueError(
                f'storage: found "{self.storage}" on {backend.name}, expected "float32": a GPU has no other; leave one out'
            )

    def describe(self) -> dict[str, Any]:
        """The arguments that are not the default, so that facts of plain SGD are those of earlier releases."""
        return {name: value for name, value in vars(self).items() if value != getattr(Moves, name)}


class Rounding:
    """From what the rounding of rows in 16 bits is drawn: a seed, and how many steps were made, which a checkpoint keeps.

    rounds  (1,) int64; None where rows are float32
    """

    def __init__(self, moves: Moves, seed: int):
        self._seed = seed
        self.rounds = None if moves.storage == "float32" else np.zeros(1, np.int64)

    def dice(self) -> int | None:
        """That of the next step, for `Rule`: asked for once a step."""
        if self.rounds is None:
            return None
        self.rounds += 1
        return ((self._seed << 40) + int(self.rounds[0])) % 2**64

    def parameters(self) -> dict[str, np.ndarray]:
        """What a checkpoint keeps."""
        return {} if self.rounds is None else {"rounds": self.rounds}


def named(options: Mapping[str, Any], part: str) -> dict[str, Any]:
    """The arguments of Moves from options of the command line, such as `rows_decay` for the part "rows"."""
    found = {name: options.get(f"{part}_{name}") for name in ("optimiser", "decay", "clip", "storage")}
    if found["storage"] == "float32":  # of every part, and also of those that know no other
        del found["storage"]
    return {name: value for name, value in found.items() if value is not None}


def readout_named(options: Mapping[str, Any]) -> dict[str, Any]:
    """The same of a readout, and whether its rows have biases."""
    return named(options, "readout") | ({"biases": True} if options.get("biases") else {})


def kept(rows: np.ndarray, moves: Moves, biases: bool = False) -> Learned:
    """Rows (R, D) with biases and squares of 0, as far as the rule needs them, on the host."""
    from cpu import aligned

    dtype = rows.dtype if moves.storage == "float32" else np.float32
    each, one = moves.optimiser == "adagrad", np.zeros(len(rows), dtype)
    squares = None if moves.optimiser == "sgd" else aligned.zeros(rows.shape if each else rows.shape[:1], dtype)
    return Learned(rows, one if biases else None, squares, one.copy() if each and biases else None)


def numbers_of(table: np.ndarray) -> np.ndarray:
    """A table as float32: itself, or a copy of one of 16 bits."""
    if table.dtype == np.float32:
        return table
    from cpu import halves

    return halves.wide(table)


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
