"""What each rank of a Predictive Vision Model computes and tells others in a tick, counted from its units."""

from typing import NamedTuple

import numpy as np

from hybrid.pvm.config import Config
from hybrid.pvm.layout import TapeLayout, tape_layout, weights_at
from hybrid.pvm.rules import wire
from hybrid.pvm.shares import divide
from hybrid.pvm.wiring import Wiring

NUMBER = 4  # bytes


class Graph(NamedTuple):
    """A model's units, and where everything of them lies."""

    wiring: Wiring
    layout: TapeLayout

    @property
    def units(self) -> int:
        """How many there are."""
        return len(self.wiring.hidden)

    @property
    def weights(self) -> np.ndarray:
        """(U,) of each unit, all of which a tick visits."""
        return np.diff(weights_at(self.layout))


class Cut(NamedTuple):
    """A model on R ranks.

    shared, interior  (R,) weights of the units whose numbers others read, and of the rest
    sends             of each rank: bytes by the rank that gets them, in a tick
    errors            bytes of the errors of all units, which all ranks get
    """

    shared: np.ndarray
    interior: np.ndarray
    sends: list[dict[int, int]]
    errors: int


def graph(config: Config) -> Graph:
    """The units of a configuration."""
    wiring = wire(config)
    return Graph(wiring, tape_layout(wiring, config))


def cut(graph: Graph, ranks: int) -> Cut:
    """What ranks have and send, by blocks of the frame; ValueError for more ranks than units."""
    shares, weights = divide(graph.wiring, graph.layout, ranks, "blocks"), graph.weights
    sends: list[dict[int, int]] = [{} for _ in range(ranks)]
    for (reader, owner), units in shares.reads.items():
        sends[owner][reader] = NUMBER * int(graph.wiring.hidden[units].sum())
    parts = zip(shares.units, shares.edge, strict=True)
    sums = np.array([[weights[units[:edge]].sum(), weights[units[edge:]].sum()] for units, edge in parts], float)
    return Cut(sums[:, 0], sums[:, 1], sends, NUMBER * graph.units)
