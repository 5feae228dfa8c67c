"""Who rated what, and when: ratings from files and arrays, and histories of them. The value of a rating is not used."""

import hashlib
import json
from array import array
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from . import tables

MISSING = ("None", "nan", "NaT", "<NA>")  # how missing values are written, those of pandas too
LEAST = 3  # items of a user of whom two are held out, to choose and to test: one is left to learn from


class Ratings(NamedTuple):
    """N ratings in file order: user[n] rated item[n] at time[n].

    user   (N,) int32, ids from 0 to U - 1
    item   (N,) int32, ids from 0 to I - 1
    time   (N,) int64 or float64; where the file has no times, the number of the row
    users  U names, in the order of first appearance
    items  I names, those rated most often first, equal counts in alphabetical order
    """

    user: np.ndarray
    item: np.ndarray
    time: np.ndarray
    users: list[str]
    items: list[str]


class Histories(NamedTuple):
    """The items of each of U users in the order of time.

    item          (N,) int32, all histories one after another
    at            (U + 1,) int64, user u has item[at[u] : at[u + 1]]
    users, items  names, see `Ratings`
    """

    item: np.ndarray
    at: np.ndarray
    users: list[str]
    items: list[str]

    @property
    def sha256(self) -> str:
        """Digest of the names and the histories."""
        digest = hashlib.sha256(json.dumps([self.users, self.items]).encode())
        digest.update(self.item.data)
        digest.update(self.at.data)
        return digest.hexdigest()


class HeldOut(NamedTuple):
    """One item of each of n users, held out of the histories.

    user  (n,) int32, numbers of users
    item  (n,) int32, the item of each
    """

    user: np.ndarray
    item: np.ndarray


class Split(NamedTuple):
    """Histories to learn from, and the items held out of them: for validation, by which settings are chosen, and for test.

    train  histories without the items held out
    valid  the last but one item of every user with at least 3 items
    seen   what comes before the test: train and valid
    test   the last item of the same users

    Of users with one or two items nothing is held out.
    """

    train: Histories
    valid: HeldOut
    seen: Histories
    test: HeldOut


def load(path: str | Path, columns: Sequence[str] | None = None) -> Ratings:
    """Read a file of ratings.

    path     MovieLens' u.data or ratings.dat; a table of text, separated by tabs, semicolons, commas, :: or blanks, as its
             first line shows; a Parquet file (needs pyarrow); or a matrix users x items as scipy.sparse.save_npz writes it,
             each entry that is not zero a rating
    columns  which columns of a table are user, item and, if there is one, time: names of the header, or numbers counted from
             1, for example ("who", "what") or (1, 2, 4). None: by the usual names in the header, such as user, userId,
             user_id, item, movieId, product_id, timestamp, time, date

    Times are numbers, or dates as in ISO 8601. Other columns are not used. Raises OSError for an unreadable file, and
    ValueError for a row that is too short or too long, with its line number, for columns that cannot be told, and for fewer
    than two items.
    """
    path = Path(path)
    with open(path, "rb") as file:
        begin = file.read(4)
    if begin == b"PAR1":
        ratings = _from_parquet(path, columns)
    elif begin == b"PK\3\4" or path.suffix == ".npz":
        if columns is not None:
            raise ValueError(
                f"columns: not used for {path}, a matrix: its rows are users, its columns items; leave it out"
            )
        ratings = _from_archive(path)
    else:
        ratings = _gathered(tables.rows(path, columns))
        if not len(ratings.user):
            raise ValueError(f"{path}: no ratings; expected one a line")
    if len(ratings.items) < 2:
        raise ValueError(f"{path}: {len(ratings.items)} different items; expected at least 2")
    return ratings


def from_columns(user: ArrayLike, item: ArrayLike, time: ArrayLike | None = None) -> Ratings:
    """Ratings from columns of one length N: lists, arrays, or columns of a data frame.

    user, item  (N,) names or numbers
    time        (N,) numbers or datetime64; None: in the order given

    Raises ValueError for columns of different lengths, and for a missing value (None, NaN, NaT or empty), with its place.
    """
    user, item = (np.asarray(values) for values in (user, item))
    moments = np.arange(len(user)) if time is None else np.asarray(time)
    for name, values in (("user", user), ("item", item), ("time", moments)):
        if values.ndim != 1 or len(values) != len(user):
            raise ValueError(
                f"{name}: found {values.dtype} {values.shape}, expected a column ({len(user)},) as user is"
            )
    if moments.dtype.kind not in "iufM":
        raise ValueError(f"time: found {moments.dtype}, expected numbers or datetime64")
    bad = np.isnat(moments) if moments.dtype.kind == "M" else ~np.isfinite(moments)
    if bad.any():
        raise ValueError(f"time[{bad.argmax()}]: found {moments[bad.argmax()]}, expected a time")
    moments = moments.view(np.int64) if moments.dtype.kind == "M" else moments
    names = _named("user", user), _named("item", item)
    return _gathered(zip(*names, moments.tolist(), strict=True))


def from_matrix(matrix: Any) -> Ratings:
    """Ratings from a scipy sparse matrix, users x items: each entry that is not zero, in the matrix's order of entries.

    Raises ValueError for something else, and for a matrix without such an entry.
    """
    from scipy import sparse

    if not sparse.issparse(matrix):
        raise ValueError(f"matrix: found {type(matrix).__name__}, expected a scipy sparse matrix, users x items")
    entries = matrix.tocoo()
    user, item = entries.row[entries.data != 0], entries.col[entries.data != 0]
    if not len(user):
        raise ValueError(f"no ratings: the matrix {matrix.shape} is all zero; expected users x items")
    return from_columns(user, item)


def histories(ratings: Ratings) -> Histories:
    """The history of each user, in the order of time; equal times in file order. Raises ValueError for anything but Ratings."""
    if not isinstance(ratings, Ratings):
        raise ValueError(
            f"ratings: found {type(ratings).__name__}, expected Ratings, as load(path), from_columns(user, item, time) or "
            "from_matrix(matrix) give them"
        )
    order = np.lexsort((np.arange(len(ratings.user)), ratings.time, ratings.user))
    at = np.concatenate([[0], np.cumsum(np.bincount(ratings.user, minlength=len(ratings.users)))])
    return Histories(ratings.item[order], at, ratings.users, ratings.items)


def split(whole: Histories) -> Split:
    """Hold out the last item of every user who has at least 3, for test, and the one before it, for validation."""
    held = np.diff(whole.at) >= LEAST
    users = np.flatnonzero(held).astype(np.int32)
    last = whole.at[1:][held] - 1
    train, seen = (_without(whole, rows) for rows in (np.concatenate([last - 1, last]), last))
    return Split(train, HeldOut(users, whole.item[last - 1]), seen, HeldOut(users, whole.item[last]))


def _without(whole: Histories, rows: np.ndarray) -> Histories:
    kept = np.ones(len(whole.item), bool)
    kept[rows] = False
    at = np.concatenate([[0], np.cumsum(kept)])[whole.at]
    return Histories(whole.item[kept], at, whole.users, whole.items)


class _Names:
    """Dense ids of names, in the order of first appearance."""

    def __init__(self) -> None:
        self.ids: dict[str, int] = {}
        self.rows = array("i")

    def add(self, name: str) -> None:
        self.rows.append(self.ids.setdefault(name, len(self.ids)))


def _gathered(rows: Iterable[tuple[str, str, int | float | None]]) -> Ratings:
    users, items = _Names(), _Names()
    times = []
    for user, item, time in rows:
        users.add(user)
        items.add(item)
        if time is not None:
            times.append(time)
    user_ids, item_ids = (np.array(names.rows, np.int32) for names in (users, items))
    moments = np.array(times) if times else np.arange(len(user_ids))
    return _most_rated_first(Ratings(user_ids, item_ids, moments, list(users.ids), list(items.ids)))


def _named(kind: str, values: np.ndarray) -> list[str]:
    """The values as names; ValueError for one that is missing."""
    names = []
    for at, value in enumerate(values.tolist()):
        name = str(value).strip()
        if not name or (name in MISSING and not isinstance(value, str)):
            raise ValueError(f"{kind}[{at}]: found {value!r}, expected a name or number")
        names.append(name)
    return names


def _from_parquet(path: Path, columns: Sequence[str] | None) -> Ratings:
    try:
        from pyarrow import parquet
    except ImportError:
        raise ValueError(
            f"{path}: a Parquet file is read with pyarrow; pip install pyarrow, or write it as CSV"
        ) from None
    try:
        table = parquet.read_table(path)
    except Exception as error:  # pyarrow has its own
        raise ValueError(f"{path}: no Parquet table ({error}); was it cut short?") from None
    at = tables.place(path, table.column_names, columns, header=True)
    user, item = (table.column(number).to_pylist() for number in (at.user, at.item))
    time = None if at.time is None else table.column(at.time).to_numpy()
    try:
        return from_columns(user, item, time)
    except ValueError as error:
        raise ValueError(f"{path}: {error}") from None


def _from_archive(path: Path) -> Ratings:
    """The non-zero entries of a scipy sparse matrix; scipy reads it without pickle."""
    from scipy import sparse

    try:
        with open(path, "rb") as file:
            matrix = sparse.load_npz(file)
        if hasattr(matrix, "check_format"):
            matrix.check_format(full_check=True)  # a stranger's indices may point anywhere
        matrix = matrix.tocoo()
    except OSError as error:
        raise OSError(f"{path}: {error}") from None
    except Exception as error:  # zipfile, zlib, NumPy and scipy each have their own
        raise ValueError(
            f"{path}: no scipy sparse matrix ({error}); expected a file of scipy.sparse.save_npz, users x items"
        ) from None
    try:
        return from_matrix(matrix)
    except ValueError as error:
        raise ValueError(f"{path}: {error}") from None


def _most_rated_first(ratings: Ratings) -> Ratings:
    """Renumber the items, so that the rows used most lie together."""
    counts = np.bincount(ratings.item, minlength=len(ratings.items))
    order = sorted(range(len(counts)), key=lambda item: (-counts[item], ratings.items[item]))
    rank = np.empty(len(order), np.int32)
    rank[order] = np.arange(len(order))
    return ratings._replace(item=rank[ratings.item], items=[ratings.items[item] for item in order])
