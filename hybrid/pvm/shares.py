"""Which rank has which units of a model, in which order, and what it reads of the others'.

Ranks hold the weights of their own units, so what a unit costs is its parameters. What units publish for units of other ranks
is sent at each tick, so units that read each other should be of one rank: "blocks" cuts the frame, and with it all layers
above, into blocks of equal cost (recursive coordinate bisection, Berger and Bokhari 1987, IEEE Transactions on Computers 36);
"cost" cuts the list of units into ranges of equal cost.
"""

from itertools import pairwise
from typing import NamedTuple

import numpy as np

from .layout import TapeLayout, weights_at
from .wiring import Wiring

CUTS = ("blocks", "cost")


class Shares(NamedTuple):
    """U units on R ranks.

    units  R x (u,) the units of each rank, in the order in which it has them: first those that others read, then the rest
    edge   (R,) how many others read
    reads  by (rank, other): the ascending units of the other rank that the rank reads; pairs without any are left out
    """

    units: list[np.ndarray]
    edge: list[int]
    reads: dict[tuple[int, int], np.ndarray]


def divide(wiring: Wiring, layout: TapeLayout, ranks: int, cut: str) -> Shares:
    """The shares of so many ranks.

    layout  of all units
    cut     one of CUTS

    Raises ValueError for a cut of another name, and for more ranks than units.
    """
    if cut not in CUTS:
        raise ValueError(f"cut: found {cut!r}, expected one of {', '.join(CUTS)}")
    count = len(wiring.hidden)
    if ranks > count:
        raise ValueError(f"ranks: found {ranks} for a model of {count} units, expected at most {count}; start fewer")
    cost = np.diff(weights_at(layout))
    owner = np.empty(count, np.int64)
    places = _over_the_frame(wiring) if cut == "blocks" else np.stack([np.arange(count), np.zeros(count)], axis=1)
    _bisect(owner, np.arange(count), places, cost, 0, ranks)
    return _shares(wiring, owner, ranks)


def _bisect(owner: np.ndarray, units: np.ndarray, places: np.ndarray, cost: np.ndarray, first: int, ranks: int) -> None:
    """Give units to the ranks from `first` on: cut across the longer side, and each half again for half of the ranks."""
    if ranks == 1:
        owner[units] = first
        return
    own = places[units]
    side = int(np.ptp(own, axis=0).argmax())
    units = units[np.lexsort((units, own[:, 1 - side], own[:, side]))]
    left, right = _halves(units, cost, ranks // 2, ranks)
    _bisect(owner, left, places, cost, first, ranks // 2)
    _bisect(owner, right, places, cost, first + ranks // 2, ranks - ranks // 2)


def _halves(units: np.ndarray, cost: np.ndarray, part: int, ranks: int) -> tuple[np.ndarray, np.ndarray]:
    """Cut a list of units so that the first half has about part / ranks of the cost, and each rank at least one unit."""
    ends = np.cumsum(cost[units])
    at = int(np.searchsorted(ends - cost[units] / 2, ends[-1] * part / ranks))
    at = min(max(at, part), len(units) - (ranks - part))
    return units[:at], units[at:]


def _over_the_frame(wiring: Wiring) -> np.ndarray:
    """(U, 2) where the middle of each unit is over the frame, in pixels: layers lie over each other."""
    grids = np.array(wiring.grids)[wiring.layer]
    frame: np.ndarray = np.array(wiring.frame[:2])
    places: np.ndarray = (np.stack([wiring.row, wiring.column], axis=1) + 0.5) / grids * frame
    return places


def _shares(wiring: Wiring, owner: np.ndarray, ranks: int) -> Shares:
    count = len(owner)
    reader = np.repeat(np.arange(count), [len(a) + len(b) for a, b in zip(wiring.signal, wiring.context, strict=True)])
    seen = zip(wiring.signal, wiring.context, strict=True)
    source = np.concatenate([ids for pair in seen for ids in pair])
    apart = owner[reader] != owner[source]
    read = np.unique(owner[reader[apart]] * count + source[apart])  # a rank, and a unit that it reads
    rank, unit = np.divmod(read, count)
    outside = np.zeros(count, bool)
    outside[unit] = True
    units = [np.flatnonzero(owner == one) for one in range(ranks)]
    order = np.lexsort((unit, owner[unit], rank))
    pairs = np.stack([rank, owner[unit]], axis=1)[order]
    first = np.flatnonzero((np.diff(pairs, axis=0, prepend=-1) != 0).any(axis=1))  # of each pair
    ends = pairwise([*first.tolist(), len(order)])
    reads = {
        (one, other): unit[order[slice(*span)]] for (one, other), span in zip(pairs[first].tolist(), ends, strict=True)
    }
    return Shares(
        units=[np.concatenate([own[outside[own]], own[~outside[own]]]) for own in units],
        edge=[int(outside[own].sum()) for own in units],
        reads=reads,
    )
