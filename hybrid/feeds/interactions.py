"""Who took what, and when: as columns, and as a history of each user."""

import hashlib
import json
from typing import NamedTuple

import numpy as np


class Ratings(NamedTuple):
    """N ratings in file order: user[n] rated item[n] at time[n].

    user    (N,) int32, ids from 0 to U - 1
    item    (N,) int32, ids from 0 to I - 1
    time    (N,) int64 or float64; where the file has no times, the number of the row
    users   U names, in the order of first appearance
    items   I names, those rated most often first, equal counts in alphabetical order
    weight  (N,) float32, how much each counts; None: all count 1
    """

    user: np.ndarray
    item: np.ndarray
    time: np.ndarray
    users: list[str]
    items: list[str]
    weight: np.ndarray | None = None


class Histories(NamedTuple):
    """The items of each of U users in the order of time.

    item          (N,) int32, all histories one after another
    at            (U + 1,) int64, user u has item[at[u] : at[u + 1]]
    users, items  names, see `Ratings`
    weight        (N,) float32, how much each item counts as a target; None: all count 1
    time          (N,) when each was taken, as in `Ratings`; None: not known
    """

    item: np.ndarray
    at: np.ndarray
    users: list[str]
    items: list[str]
    weight: np.ndarray | None = None
    time: np.ndarray | None = None

    @property
    def sha256(self) -> str:
        """Digest of the names, the histories and the weights."""
        digest = hashlib.sha256(json.dumps([self.users, self.items]).encode())
        digest.update(self.item.data)
        digest.update(self.at.data)
        if self.weight is not None:
            digest.update(self.weight.data)
        return digest.hexdigest()

    def only(self, kept: np.ndarray) -> "Histories":
        """The histories of some of the items; kept (N,) bool."""
        at = np.concatenate([[0], np.cumsum(kept)])[self.at]
        weight, time = (None if part is None else part[kept] for part in (self.weight, self.time))
        return Histories(self.item[kept], at, self.users, self.items, weight, time)


def histories(ratings: Ratings) -> Histories:
    """The history of each user, in the order of time; equal times in file order. Raises ValueError for anything but Ratings."""
    if not isinstance(ratings, Ratings):
        raise ValueError(
            f"ratings: found {type(ratings).__name__}, expected Ratings, as load(path), from_columns(user, item, time) or "
            "from_matrix(matrix) give them"
        )
    order = np.lexsort((np.arange(len(ratings.user)), ratings.time, ratings.user))
    at = np.concatenate([[0], np.cumsum(np.bincount(ratings.user, minlength=len(ratings.users)))])
    weight = None if ratings.weight is None else ratings.weight[order]
    return Histories(ratings.item[order], at, ratings.users, ratings.items, weight, ratings.time[order])
