"""What each rank of a Predictive Vision Model computes and tells others in a tick, counted from the graph of its units."""

from typing import NamedTuple

import numpy as np

from hybrid.pvm.config import Config
from hybrid.pvm.rules import wire
from hybrid.pvm.sizes import sizes
from hybrid.pvm.wiring import Wiring

NUMBER = 4  # bytes


class Graph(NamedTuple):
    """A model's units: their cost, and who reads whom.

    weights         (U,) of each unit, which a tick visits
    reader, source  (E,) a unit, and one whose hidden numbers it reads
    hidden          (U,) how many those are
    place           (U, 2) where its middle is over the frame, as a share of it: rows, columns
    frame           numbers of a frame
    """

    weights: np.ndarray
    reader: np.ndarray
    source: np.ndarray
    hidden: np.ndarray
    place: np.ndarray
    frame: int


class Cut(NamedTuple):
    """A model on R ranks.

    shared, interior  (R,) weights of the units whose numbers others read, and of the rest
    sends             of each rank: bytes by the rank that gets them, in a tick
    """

    shared: np.ndarray
    interior: np.ndarray
    sends: list[dict[int, int]]

    @property
    def weights(self) -> np.ndarray:
        """(R,) of each rank."""
        return self.shared + self.interior


def graph(config: Config) -> Graph:
    """The graph of a configuration of simple units."""
    if config.unit != "simple" or config.context_to_output:
        raise ValueError(f"graph: found {config.unit!r} units, expected simple ones without a raw context")
    wiring = wire(config)
    size, hidden = sizes(config, wiring), wiring.hidden.astype(np.int64)
    sources = [np.concatenate(pair) for pair in zip(wiring.signal, wiring.context, strict=True)]
    return Graph(
        weights=hidden * (size.input + 1) + size.output * (hidden + 1),
        reader=np.repeat(np.arange(len(hidden)), [len(one) for one in sources]),
        source=np.concatenate(sources),
        hidden=hidden,
        place=_places(wiring),
        frame=int(np.prod(wiring.frame)),
    )


def _places(wiring: Wiring) -> np.ndarray:
    grids = np.array(wiring.grids)[wiring.layer]
    places: np.ndarray = (np.stack([wiring.row, wiring.column], axis=1) + 0.5) / grids
    return places


def bands(graph: Graph, ranks: int) -> np.ndarray:
    """(U,) the rank of each unit: bands of rows over all layers, of equal cost as nearly as units allow."""
    order = np.lexsort((graph.place[:, 1], graph.place[:, 0]))
    ends = np.cumsum(graph.weights[order])
    owner = np.empty(len(order), np.int64)
    owner[order] = np.minimum((ends - graph.weights[order] / 2) * ranks // ends[-1], ranks - 1)
    return owner


def cut(graph: Graph, owner: np.ndarray, ranks: int) -> Cut:
    """What follows from the rank of each unit: what one rank reads of another's unit is sent to it once."""
    units = len(owner)
    apart = owner[graph.reader] != owner[graph.source]
    read = np.unique(owner[graph.reader[apart]] * units + graph.source[apart])
    rank, unit = np.divmod(read, units)
    outside = np.zeros(units, bool)
    outside[unit] = True
    shared, interior = (np.bincount(owner, graph.weights * which, ranks) for which in (outside, ~outside))
    pairs, of_pair = np.unique(owner[unit] * ranks + rank, return_inverse=True)
    sizes = np.bincount(of_pair, NUMBER * graph.hidden[unit], len(pairs))
    sends: list[dict[int, int]] = [{} for _ in range(ranks)]
    for pair, size in zip(pairs.tolist(), sizes.tolist(), strict=True):
        sends[pair // ranks][pair % ranks] = int(size)
    return Cut(shared, interior, sends)
