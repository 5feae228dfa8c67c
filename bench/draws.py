"""What a search draws: kinds of numbers and names, and the spaces of rows, trunks and readouts that problems share."""

import math
import zlib
from collections.abc import Mapping
from typing import Any, NamedTuple, Protocol

import numpy as np

DRAWN = 0  # the seed of the settings


class Draw(Protocol):
    """One number or name of settings."""

    def at(self, share: float, found: Mapping[str, Any]) -> Any:
        """The value at a share from 0 to 1 of what there is; found: the settings drawn before."""


class Among(NamedTuple):
    """One of some values, which may be there more than once."""

    values: tuple[Any, ...]

    def at(self, share: float, found: Mapping[str, Any]) -> Any:
        """See Draw."""
        return self.values[int(share * len(self.values))]


class Log(NamedTuple):
    """A number, evenly in the logarithm, of two digits."""

    low: float
    high: float

    def at(self, share: float, found: Mapping[str, Any]) -> float:
        """See Draw."""
        return float(f"{math.exp(math.log(self.low) + share * math.log(self.high / self.low)):.2g}")


class By(NamedTuple):
    """As another setting says, which was drawn before: the rate of an optimiser; where there is none to choose, of sgd."""

    name: str
    each: Mapping[str, Draw]

    def at(self, share: float, found: Mapping[str, Any]) -> Any:
        """See Draw."""
        return self.each[found.get(self.name, "sgd")].at(share, found)


Space = dict[str, Draw]

OPTIMISERS = Among(("sgd", "row-adagrad", "adagrad"))
TRUNK: Space = {
    "trunk_optimiser": Among(("sgd", "adagrad", "adam")),
    "trunk_rate": By("trunk_optimiser", {"sgd": Log(0.02, 0.5), "adagrad": Log(0.003, 0.1), "adam": Log(3e-4, 0.01)}),
    "trunk_decay": Among((0.0, 0.0, 1e-5, 1e-4)),
    "dropout": Among((0.0, 0.0, 0.1, 0.3)),
}
ADAGRAD = {"row-adagrad": Log(0.005, 0.3), "adagrad": Log(0.005, 0.3)}
# A tree learns example by example, softmaxes from the sum over a micro-batch.
BY_EXAMPLE, BY_BATCH = Log(0.01, 0.2), Log(0.002, 0.1)
RATE = {"tree": BY_EXAMPLE, "full": BY_BATCH, "sampled": BY_BATCH}


def sparse(readout: str, rows: Log) -> Space:
    """Optimisers and rates of rows and readout; of kinds that are not in RATE, both ranges of rates together."""
    return {
        "rows_optimiser": OPTIMISERS,
        "rows_rate": By("rows_optimiser", {"sgd": rows, **ADAGRAD}),
        "readout_optimiser": OPTIMISERS,
        "rate": By("readout_optimiser", {"sgd": RATE.get(readout, Log(0.002, 0.2)), **ADAGRAD}),
    }


def drawn(space: Space, number: int) -> dict[str, Any]:
    """The number-th settings. A name has the same share of its range in every space, whatever else is drawn."""
    found: dict[str, Any] = {}
    for name, draw in space.items():
        share = np.random.default_rng([DRAWN, number, zlib.crc32(name.encode())]).random()
        found[name] = draw.at(share, found)
    return found
