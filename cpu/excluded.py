"""Ids that a search excludes, for each row: items that a user has already, classes that do not apply."""

from typing import NamedTuple

import numpy as np

from cpu.array import Array
from cpu.compiled import launched


class Excluded(NamedTuple):
    """Row b excludes ids[first[b] : last[b]], which rise and are distinct.

    first, last  (B,) int64
    ids          (N,) int32
    """

    first: np.ndarray
    last: np.ndarray
    ids: np.ndarray

    def of(self, rows: slice | Array) -> "Excluded":
        """What some of the rows exclude; rows: a slice or indices."""
        return Excluded(self.first[rows], self.last[rows], self.ids)


def nothing(rows: int) -> Excluded:
    """No row excludes anything."""
    ends = np.zeros(rows, np.int64)
    return Excluded(ends, ends, np.empty(0, np.int32))


@launched()
def seek(ids, first, last, id_):
    """The first place in ids[first : last] that holds id_ or a higher id; `last` where there is none."""
    while first < last:
        middle = (first + last) // 2
        if ids[middle] < id_:
            first = middle + 1
        else:
            last = middle
    return first


@launched()
def holds(ids, first, last, id_):
    """Whether id_ is among ids[first : last]."""
    place = seek(ids, first, last, id_)
    return place < last and ids[place] == id_
