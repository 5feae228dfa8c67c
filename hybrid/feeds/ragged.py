"""Lists of ids of different lengths, concatenated in one array."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from .. import check


class Ragged(NamedTuple):
    """N lists of ids.

    ids     (M,) int32, the concatenated lists
    at      (N + 1,) int64, list n is ids[at[n] : at[n + 1]]
    values  (M,) float32, a number for each id; None: no values
    """

    ids: np.ndarray
    at: np.ndarray
    values: np.ndarray | None = None

    def take(self, rows: np.ndarray) -> "Ragged":
        """Returns the selected lists."""
        places, at = spans(self.at[rows], self.at[rows + 1])
        return Ragged(self.ids[places], at, None if self.values is None else self.values[places])

    def most(self, rows: int) -> int:
        """Returns the maximum number of ids over any `rows` lists."""
        return int(np.sort(np.diff(self.at))[::-1][:rows].sum())


def spans(first: np.ndarray, last: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Returns the concatenated integers of [first[b], last[b]) for every b, and their offsets, (B + 1,)."""
    sizes = last - first
    at = np.concatenate([[0], np.cumsum(sizes)])
    return np.arange(at[-1]) + np.repeat(first - at[:-1], sizes), at


def from_lists(name: str, lists: Sequence[Any], limit: int | None = None) -> Ragged:
    """Returns the ragged ids of a sequence of sequences.

    limit  exclusive upper bound of the ids; None: 2^31 - 1

    Raises ValueError for anything but lists of integers, and IndexError for an id out of range, naming the list.
    """
    found = [check.row(f"{name}[{place}]", ids) for place, ids in enumerate(lists)]
    at = np.concatenate([[0], np.cumsum([len(ids) for ids in found], dtype=np.int64)])
    most = check.ID if limit is None else limit
    for place, ids in enumerate(found):
        check.ids(f"{name}[{place}]", ids, most)
    whole = np.concatenate(found) if at[-1] else np.empty(0)
    return Ragged(whole.astype(np.int32), at)


def from_sparse(name: str, matrix: Any, *, valued: bool) -> Ragged:
    """Returns the nonzero columns of each row, ascending, if `valued` with float32 values. Raises as check.csr does."""
    rows = check.csr(name, matrix, dtype=np.float32 if valued else None, zeros=False)
    return Ragged(rows.indices.astype(np.int32), rows.indptr.astype(np.int64), rows.data if valued else None)
