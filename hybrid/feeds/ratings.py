"""Who rated what, and when: ratings from files, frames and arrays. The value of a rating is a weight where it is named so."""

from array import array
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from .. import check
from ..storage import document, npz, parquet
from . import frames, tables
from .interactions import Histories, Ratings, histories
from .splits import HeldOut, Split, split, split_by_ratio, split_by_time, split_drawn

__all__ = [
    "HeldOut",
    "Histories",
    "Ratings",
    "Split",
    "from_columns",
    "from_frame",
    "from_matrix",
    "histories",
    "load",
    "split",
    "split_by_ratio",
    "split_by_time",
    "split_drawn",
]

Row = tuple[str, str, int | float | None, float | None]  # user, item, time, weight

MISSING = ("None", "nan", "NaT", "<NA>")  # how missing values are written, those of pandas too


def load(path: str | Path, columns: Sequence[str] | None = None) -> Ratings:
    """Read a file of ratings.

    path     MovieLens' u.data or ratings.dat; a table of text, separated by tabs, semicolons, commas, :: or blanks, as its
             first line shows; a Parquet file (needs pyarrow); or a matrix users x items as scipy.sparse.save_npz writes it,
             each entry that is not zero a rating
    columns  which columns of a table are user, item and, if there are such, time and weight: names of the header, or numbers
             counted from 1, for example ("who", "what") or (1, 2, 4, 3), with "" for no time. None: by the usual names in the
             header, such as user, userId, user_id, item, movieId, product_id, timestamp, time, date; then there is no weight

    Times are numbers, or dates as in ISO 8601. Other columns are not used. Tables are read by pieces. Raises OSError for an
    unreadable file, and ValueError for a row that is too short or too long, with its line number, for columns that cannot be
    told, and for fewer than two items.
    """
    path = Path(path)
    document.expect_file(path)
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


def from_columns(
    user: ArrayLike, item: ArrayLike, time: ArrayLike | None = None, weight: ArrayLike | None = None
) -> Ratings:
    """Ratings from columns of one length N: lists, arrays, or columns of a data frame.

    user, item  (N,) names or numbers
    time        (N,) numbers or datetime64; None: in the order given
    weight      (N,) numbers of at least 0, how much each counts as a target; None: all count 1

    Raises ValueError for columns of different lengths, and for a missing value (None, NaN, NaT or empty), with its place.
    """
    return _gathered(_rows(user, item, time, weight))


def from_frame(
    frame: Any, *, user: str | None = None, item: str | None = None, time: str | None = None, weight: str | None = None
) -> Ratings:
    """Ratings from a data frame of pandas or polars, an Arrow table, whatever offers Arrow's streams, or a dict of columns.

    user, item, time, weight  names of its columns; None: by the usual names, see `load`; there is no weight unless it is named

    Times are numbers, dates of any kind, or texts in ISO 8601. Raises ValueError for columns that are not there or cannot be
    told, and as `from_columns` does.
    """
    frame = frames.standard(frame)
    named = frames.chosen(frame, (user, item, time, weight))
    columns = [None if name is None else frames.column(frame, name) for name in named]
    if columns[2] is not None:
        columns[2] = frames.moments(columns[2])
    return from_columns(*columns)  # type: ignore[arg-type]


def from_matrix(matrix: Any) -> Ratings:
    """Ratings from a scipy sparse matrix, users x items: each entry that is not zero, in the matrix's order of entries.

    Raises ValueError as check.sparse does, and for a matrix without such an entry.
    """
    entries = check.sparse("matrix", matrix).tocoo()
    user, item = entries.row[entries.data != 0], entries.col[entries.data != 0]
    if not len(user):
        raise ValueError(f"no ratings: the matrix {matrix.shape} is all zero; expected users x items")
    return from_columns(user, item)


class _Names:
    """Dense ids of names, in the order of first appearance."""

    def __init__(self) -> None:
        self.ids: dict[str, int] = {}
        self.rows = array("i")

    def add(self, name: str) -> None:
        self.rows.append(self.ids.setdefault(name, len(self.ids)))


def _gathered(rows: Iterable[Row]) -> Ratings:
    users, items = _Names(), _Names()
    times: list[int | float] = []
    weights = array("f")
    for user, item, time, weight in rows:
        users.add(user)
        items.add(item)
        if time is not None:
            times.append(time)
        if weight is not None:
            weights.append(weight)
    user_ids, item_ids = (np.array(names.rows, np.int32) for names in (users, items))
    moments = np.array(times) if times else np.arange(len(user_ids))
    weight_of = np.array(weights, np.float32) if weights else None
    return _most_rated_first(Ratings(user_ids, item_ids, moments, list(users.ids), list(items.ids), weight_of))


def _rows(user: Any, item: Any, time: Any = None, weight: Any = None, before: int = 0) -> Iterator[Row]:
    """The rows of columns; before: how many rows there were before these, for messages."""
    user, item = (np.asarray(values) for values in (user, item))
    moments = None if time is None else np.asarray(time)
    weights = None if weight is None else np.asarray(weight)
    for name, values in (("user", user), ("item", item), ("time", moments), ("weight", weights)):
        if values is not None and (values.ndim != 1 or len(values) != len(user)):
            raise ValueError(
                f"{name}: found {values.dtype} {values.shape}, expected a column ({len(user)},) as user is"
            )
    names = _named("user", user, before), _named("item", item, before)
    return zip(*names, _times(moments, len(user), before), _weights(weights, len(user), before), strict=True)


def _times(values: np.ndarray | None, n: int, before: int) -> Sequence[int | float | None]:
    """The times as numbers, None each where there are none; ValueError for a missing one."""
    if values is None:
        return [None] * n
    if values.dtype.kind not in "iufM":
        raise ValueError(f"time: found {values.dtype}, expected numbers or datetime64")
    bad = np.isnat(values) if values.dtype.kind == "M" else ~np.isfinite(values)
    if bad.any():
        raise ValueError(f"time[{before + bad.argmax()}]: found {values[bad.argmax()]}, expected a time")
    found: list[int | float] = (values.view(np.int64) if values.dtype.kind == "M" else values).tolist()
    return found


def _weights(values: np.ndarray | None, n: int, before: int) -> Sequence[float | None]:
    if values is None:
        return [None] * n
    if values.dtype.kind not in "iuf":
        raise ValueError(f"weight: found {values.dtype}, expected numbers of at least 0")
    bad = ~((values >= 0) & (values <= check.FLOAT32))
    if bad.any():
        raise ValueError(
            f"weight[{before + bad.argmax()}]: found {values[bad.argmax()]}, expected a number of at least 0, finite in float32"
        )
    found: list[float] = values.tolist()
    return found


def _named(kind: str, values: np.ndarray, before: int) -> list[str]:
    """The values as names; ValueError for one that is missing."""
    names = []
    for at, value in enumerate(values.tolist()):
        name = "" if isinstance(value, (list, tuple, dict, np.ndarray)) else str(value).strip()
        if not name or (name in MISSING and not isinstance(value, str)):
            raise ValueError(f"{kind}[{before + at}]: found {value!r}, expected a name or number")
        names.append(name)
    return names


def _from_parquet(path: Path, columns: Sequence[str] | None) -> Ratings:
    file = parquet.opened(path)
    with document.named(path):
        place = tables.place(path, file.schema_arrow.names, columns, header=True)
        return _gathered(_of_parquet(path, file, place))


def _of_parquet(path: Path, file: Any, at: tables.Place) -> Iterator[Row]:
    """The rows of a Parquet file, of which a piece is in memory at a time."""
    names, before = file.schema_arrow.names, 0
    wanted = [None if place is None else names[place] for place in (at.user, at.item, at.time, at.weight)]
    for user, item, time, weight in parquet.columns(path, file, wanted):
        yield from _rows(user, item, None if time is None else frames.moments(time), weight, before)
        before += len(user)


def _from_archive(path: Path) -> Ratings:
    """The non-zero entries of a scipy sparse matrix; scipy reads it without pickle."""
    from scipy import sparse

    expected = "a matrix by scipy.sparse.save_npz, users x items"
    npz.refuse_large(path, expected)
    try:
        with open(path, "rb") as file:
            matrix = check.sparse("matrix", sparse.load_npz(file))  # a stranger's indices may point anywhere
    except OSError as error:
        raise OSError(f"{path}: {error}") from None
    except Exception as error:  # zipfile, zlib, NumPy and scipy each have their own
        raise ValueError(f"{path}: no .npz that can be read ({error}); expected one of {expected}") from None
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
