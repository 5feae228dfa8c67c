"""Optimisers with PyTorch's formulas: for trunks, and for the rows of embeddings and readouts."""

import dataclasses
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from . import check

TRUNK = ("sgd", "adam", "adamw")  # of dense weights
ROWS = ("sgd", "row-adagrad", "adagrad")  # of sparsely updated rows


@dataclass(frozen=True)
class Optimiser:
    """The base class of optimisers.

    rate  learning rate; None: the default of the part that it updates

    Raises ValueError for numbers out of range.
    """

    rate: float | None = None

    def __post_init__(self) -> None:
        if self.rate is not None:
            check.number("rate", self.rate, 0)

    @property
    def name(self) -> str:
        """The name in the command line and in checkpoints."""
        return NAMES[type(self)]


@dataclass(frozen=True)
class Dense(Optimiser):
    """The base class of optimisers for trunks.

    decay  weight decay, also of biases and gains
    clip   maximum norm of the gradient of all weights; None: no clipping
    """

    _: dataclasses.KW_ONLY
    decay: float = 0.0
    clip: float | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        check.number("decay", self.decay, 0)
        if self.clip is not None and check.number("clip", self.clip, 0) == 0:
            raise ValueError("clip: found 0, expected a number above 0; None does not clip")


@dataclass(frozen=True)
class SGD(Dense):
    """Stochastic gradient descent with `momentum` below 1."""

    _: dataclasses.KW_ONLY
    momentum: float = 0.0

    def __post_init__(self) -> None:
        super().__post_init__()
        if check.number("momentum", self.momentum, 0) >= 1:
            raise ValueError(f"momentum: found {self.momentum}, expected a number below 1")


@dataclass(frozen=True)
class Adagrad(Optimiser):
    """Adagrad (Duchi et al. 2011), one sum of squares per number: for embeddings and readouts."""


@dataclass(frozen=True)
class RowAdagrad(Optimiser):
    """Row-wise Adagrad, one sum of squares per row: for embeddings and readouts."""


@dataclass(frozen=True)
class Adam(Dense):
    """Adam (Kingma and Ba 2015); betas: decay factors of the means of gradients and of their squares."""

    _: dataclasses.KW_ONLY
    betas: Sequence[float] = (0.9, 0.999)

    def __post_init__(self) -> None:
        super().__post_init__()
        betas: Any = self.betas
        pair = tuple(betas) if isinstance(betas, list | tuple) else ()
        if len(pair) != 2 or not all(isinstance(beta, int | float) and 0 <= beta < 1 for beta in pair):
            raise ValueError(f"betas: found {self.betas}, expected two numbers from 0 to below 1")
        object.__setattr__(self, "betas", pair)


@dataclass(frozen=True)
class AdamW(Adam):
    """Adam with decoupled weight decay (Loshchilov and Hutter 2019)."""

    _: dataclasses.KW_ONLY
    decay: float = 0.01


NAMES: dict[Any, str] = {SGD: "sgd", Adagrad: "adagrad", RowAdagrad: "row-adagrad", Adam: "adam", AdamW: "adamw"}
_NAMED: dict[str, type[Optimiser]] = {name: kind for kind, name in NAMES.items()}


def named(name: str, among: Sequence[str], **numbers: Any) -> Optimiser:
    """Returns an optimiser by its name in the command line and checkpoints; a number of None takes its default.

    Raises ValueError for a name outside `among`, and for a number that this optimiser does not have.
    """
    kind = _NAMED[check.choice("optimiser", name, tuple(among))]
    given = {number: value for number, value in numbers.items() if value is not None}
    fields = {field.name for field in dataclasses.fields(kind)}
    for number, value in given.items():
        if number not in fields:
            raise ValueError(f'{number}: found {value} with optimiser "{name}", which has none; leave it out')
    return kind(**given)


def taken(optimiser: str | Optimiser, among: Sequence[str]) -> Optimiser:
    """Returns an optimiser from its name or itself; ValueError unless its name is in `among`."""
    if not isinstance(optimiser, Optimiser):
        return named(optimiser, among)
    if optimiser.name not in among:
        raise ValueError(f"optimiser: found {optimiser}, expected one of {', '.join(among)}")
    return optimiser


def of_rows(optimiser: str | Optimiser, rate: float) -> tuple[str, float]:
    """Returns name and rate of an optimiser of rows; ValueError for another kind, and for momentum, decay or clip."""
    made = taken(optimiser, ROWS)
    for field in dataclasses.fields(made):
        value = getattr(made, field.name)
        if field.name != "rate" and value != field.default:
            raise ValueError(f"{field.name}: found {value} in {made}, expected none: rows have no {field.name}")
    return made.name, rate if made.rate is None else made.rate
