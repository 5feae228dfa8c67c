"""Who rated what, and when: ratings from files, frames and arrays, and the histories that they make.

The value of a rating is a weight where it is named so.
"""

import csv
import itertools
import re
from array import array
from collections.abc import Callable, Iterable, Iterator, Sequence
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from .. import check
from ..storage import files
from ..storage.tables import open_parquet, parquet_columns, refuse_large
from .histories import Histories
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

USER = ("user", "userid", "uid")  # usual names of columns, in lower case without "_", "-" and blanks
ITEM = ("item", "itemid", "iid", "movie", "movieid", "product", "productid")
TIME = ("timestamp", "time", "unixtime", "date", "datetime")
TYPED = re.compile(r":(token|float)(_seq)?$")  # the ends of names in the header of a RecBole .inter
USERS = re.compile(r"(?:1,2|1)-")  # columns of a file with a line a user
MISSING = ("None", "nan", "NaT", "<NA>")  # how missing values are written, those of pandas too
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)

Moment = int | float
Row = tuple[str, str, Moment | None, float | None]  # user, item, time, weight; None: there is no such column


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


def load(path: str | Path, columns: Sequence[str] | None = None) -> Ratings:
    """Read a file of ratings.

    path     MovieLens' u.data or ratings.dat; a table of text, separated by tabs, semicolons, commas, :: or blanks, as its
             first line shows, such as RecBole's .inter; a text with a line a user; a Parquet file (needs pyarrow); or a matrix
             users x items as scipy.sparse.save_npz writes it, each entry that is not zero a rating
    columns  which columns of a table are user, item and, if there are such, time and weight: names of the header, or numbers
             counted from 1, for example ("who", "what") or (1, 2, 4, 3), with "" for no time. None: by the usual names in the
             header, such as user, userId, user_id, item, movieId, product_id, timestamp, time, date; then there is no weight.
             ("1", "2-"): of each line the first is the user, and from the second on what he took, in order; ("1-",): all are
             what somebody took, whose name is the number of the line

    Times are numbers, or dates as in ISO 8601. Other columns are not used. Tables are read by pieces. Raises OSError for an
    unreadable file, and ValueError for a row that is too short or too long, with its line number, for columns that cannot be
    told, and for fewer than two items.
    """
    path = Path(path)
    files.expect_file(path)
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
        ratings = _gathered(_of_text(path, columns))
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
    return _gathered(_of_columns(user, item, time, weight))


def from_frame(
    frame: Any, *, user: str | None = None, item: str | None = None, time: str | None = None, weight: str | None = None
) -> Ratings:
    """Ratings from a data frame of pandas or polars, an Arrow table, whatever offers Arrow's streams, or a dict of columns.

    user, item, time, weight  names of its columns; None: by the usual names, see `load`; there is no weight unless it is named

    Times are numbers, dates of any kind, or texts in ISO 8601. Raises ValueError for columns that are not there or cannot be
    told, and as `from_columns` does.
    """
    frame = _with_columns(frame)
    names = _chosen_names(frame, (user, item, time, weight))
    users, items, times, weights = (
        None if name is None else np.asarray(check.unmasked(name, frame[name])) for name in names
    )
    return _gathered(_of_columns(users, items, None if times is None else _as_moments(times), weights))


def from_matrix(matrix: Any) -> Ratings:
    """Ratings from a scipy sparse matrix, users x items: each entry that is not zero, in the matrix's order of entries.

    Raises ValueError as check.sparse does, and for a matrix without such an entry.
    """
    entries = check.sparse("matrix", matrix).tocoo()
    user, item = entries.row[entries.data != 0], entries.col[entries.data != 0]
    if not len(user):
        raise ValueError(f"no ratings: the matrix {matrix.shape} is all zero; expected users x items")
    return from_columns(user, item)


def _gathered(rows: Iterable[Row]) -> Ratings:
    """The ratings of rows, the items numbered so that those rated most lie together."""
    users: dict[str, int] = {}
    items: dict[str, int] = {}
    user_ids, item_ids, weights = array("i"), array("i"), array("f")
    times: list[Moment] = []
    for user, item, time, weight in rows:
        user_ids.append(users.setdefault(user, len(users)))
        item_ids.append(items.setdefault(item, len(items)))
        if time is not None:
            times.append(time)
        if weight is not None:
            weights.append(weight)
    met, names = np.array(item_ids, np.int32), list(items)
    counts = np.bincount(met, minlength=len(names))
    order = sorted(range(len(names)), key=lambda item: (-counts[item], names[item]))
    rank = np.empty(len(order), np.int32)
    rank[order] = np.arange(len(order))
    return Ratings(
        np.array(user_ids, np.int32),
        rank[met],
        np.array(times) if times else np.arange(len(user_ids)),
        list(users),
        [names[item] for item in order],
        np.array(weights, np.float32) if weights else None,
    )


def _of_columns(user: Any, item: Any, time: Any, weight: Any, before: int = 0) -> Iterator[Row]:
    """The rows of columns; before: how many rows there were before these, for messages."""
    given = {"user": user, "item": item, "time": time, "weight": weight}
    columns = {
        name: np.asarray(check.unmasked(name, values))
        for name, values in given.items()
        if values is not None or name in ("user", "item")
    }
    n = len(columns["user"])
    for name, values in columns.items():
        if values.ndim != 1 or len(values) != n:
            raise ValueError(f"{name}: found {values.dtype} {values.shape}, expected a column ({n},) as user is")
    readers = {"user": _names, "item": _names, "time": _times, "weight": _weights}
    read = (to(name, columns[name], before) if name in columns else [None] * n for name, to in readers.items())
    return zip(*read, strict=True)


def _names(kind: str, values: np.ndarray, before: int) -> list[str]:
    """The values as names; ValueError for one that is missing."""
    names = []
    for at, value in enumerate(values.tolist()):
        name = "" if isinstance(value, list | tuple | dict | np.ndarray) else str(value).strip()
        if not name or (name in MISSING and not isinstance(value, str)):
            raise ValueError(f"{kind}[{before + at}]: found {value!r}, expected a name or number")
        names.append(name)
    return names


def _times(name: str, values: np.ndarray, before: int) -> list[Moment]:
    """The times as numbers; ValueError for a missing one."""
    if values.dtype.kind not in "iufM":
        raise ValueError(f"{name}: found {values.dtype}, expected numbers or datetime64")
    bad = np.isnat(values) if values.dtype.kind == "M" else ~np.isfinite(values)
    if bad.any():
        raise ValueError(f"{name}[{before + bad.argmax()}]: found {values[bad.argmax()]}, expected a time")
    times: list[Moment] = (values.view(np.int64) if values.dtype.kind == "M" else values).tolist()
    return times


def _weights(name: str, values: np.ndarray, before: int) -> list[float]:
    if values.dtype.kind not in "iuf":
        raise ValueError(f"{name}: found {values.dtype}, expected numbers of at least 0")
    bad = ~((values >= 0) & (values <= check.FLOAT32))
    if bad.any():
        raise ValueError(
            f"{name}[{before + bad.argmax()}]: found {values[bad.argmax()]}, expected a number of at least 0, finite in float32"
        )
    weights: list[float] = values.tolist()
    return weights


class _Columns(NamedTuple):
    """Which columns hold user, item, time and weight, counted from 0; and whether the first row is a header."""

    user: int
    item: int
    time: int | None
    weight: int | None
    header: bool


def _columns(path: Path, first: Sequence[str], columns: Sequence[str] | None = None, header: bool = False) -> _Columns:
    """The columns of a table by its first row, which is known to be a header or not; ValueError where they cannot be told."""
    fields = [TYPED.sub("", field.strip()) for field in first]
    user, item, time = (None if name is None else fields.index(name) for name in _usual_names(fields))
    if columns is not None:
        header = header or (user is not None and item is not None)
        return _named_columns(path, fields, [str(column).strip() for column in columns], header)
    if user is not None and item is not None:
        return _Columns(user, item, time, None, True)
    if not header and user is None and item is None and len(first) == 4 and fields[3].isdigit():
        return _Columns(0, 1, 3, None, False)  # MovieLens: user, item, rating, seconds
    missing = "user" if user is None else "item"
    raise ValueError(
        f"{path}: no {missing} column; found the columns {', '.join(map(repr, fields))};"
        " expected a header with user (or userId, user_id) and item (or itemId, movieId, product_id);"
        " or say which they are: --columns NAME,NAME,NAME for user, item and time, by number (1,2,4) where there is no"
        " header; the time may be left out; 1,2- where each line is a user and all his items"
    )


def usual_columns(frame: Any) -> tuple[str | None, str | None]:
    """The columns of user and item of a frame by their usual names; None for each that is not there, or for no frame."""
    try:
        return _usual_names(_column_names(frame))[:2]
    except ValueError:
        return None, None


def _usual_names(fields: Sequence[str]) -> tuple[str | None, str | None, str | None]:
    """Those of some names of columns that are usual for user, item and time; None for each that is not there."""
    plain = ["".join(c for c in field.lower() if c not in "_- ") for field in fields]
    user, item, time = (
        next((fields[plain.index(name)] for name in known if name in plain), None) for known in (USER, ITEM, TIME)
    )
    return user, item, time


def _named_columns(path: Path, fields: list[str], columns: list[str], header: bool) -> _Columns:
    if not 2 <= len(columns) <= 4 or len(set(columns)) < len(columns):
        raise ValueError(
            f"columns: found {','.join(columns)}, expected two or three that differ: user, item, time; or four with a weight"
        )
    timeless = len(columns) == 4 and not columns[2]
    given = [column for place, column in enumerate(columns) if place != 2 or not timeless]
    numbered = all(column.isdigit() for column in given)
    known = [str(number) for number in range(1, len(fields) + 1)] if numbered else fields
    for column in given:
        if column not in known:
            there = f"{len(fields)} columns" if numbered else f"the columns {', '.join(map(repr, fields))}"
            raise ValueError(f"{path}: no column {column!r}; found {there}; expected user, item and time among them")
    user, item, *more = (known.index(column) for column in given)
    time, weight = [None, *more] if timeless else [*more, None, None][:2]
    return _Columns(user, item, time, weight, header or not numbered)


def _of_text(path: Path, columns: Sequence[str] | None) -> Iterator[Row]:
    """The rows of a table of text. Raises OSError for an unreadable file, ValueError, with the line, for what is no table."""
    lines = _lines(path)
    if columns is not None and USERS.fullmatch(",".join(map(str, columns))):
        yield from _of_users(path, lines, len(columns) - 1)
        return
    first = next(lines, None)
    if first is None:
        raise ValueError(f"{path}: empty; expected ratings, one a line")
    at, width = _columns(path, first[1], columns), len(first[1])
    reader: Callable[[str], Moment] | None = None
    for line, row in lines if at.header else itertools.chain([first], lines):
        where = f"{path}, line {line}"
        if len(row) != width:
            raise ValueError(f"{where}: {len(row)} fields, expected {width} as in line {first[0]}; is it cut short?")
        for column, kind in ((at.user, "user"), (at.item, "item")):
            if not row[column].strip():
                raise ValueError(f"{where}: the {kind} is empty; expected a name or number")
        time = None
        if at.time is not None:
            reader = reader or _reader(row[at.time])
            time = _time(reader, where, row[at.time])
        weight = None if at.weight is None else _weight(where, row[at.weight])
        yield row[at.user].strip(), row[at.item].strip(), time, weight


def _of_users(path: Path, lines: Iterator[tuple[int, list[str]]], begin: int) -> Iterator[Row]:
    """The rows of a text with a line a user, whose items begin at this field; what is before them is his name."""
    for line, fields in lines:
        names = [name.strip() for name in fields]
        while names and not names[-1]:
            names.pop()
        if not all(names):
            raise ValueError(f"{path}, line {line}: a name is empty; expected a user and his items in one line")
        user = names[0] if begin and names else str(line)
        yield from ((user, item, None, None) for item in names[begin:])


def _lines(path: Path) -> Iterator[tuple[int, list[str]]]:
    """Line number and fields of every line that is not empty."""
    try:
        with open(path, encoding="utf-8-sig", newline="") as file:
            separator = _separator(file.readline())
            file.seek(0)
            if separator in ("::", None):
                for line, text in enumerate(file, 1):
                    if text.strip():
                        yield line, text.rstrip("\r\n").split(separator)
                return
            reader = csv.reader(file, delimiter=separator, strict=True)
            yield from ((reader.line_num, row) for row in reader if row)
    except UnicodeDecodeError as error:
        raise ValueError(
            f"{path}: not UTF-8 ({error.reason}); expected a table of text, a Parquet file or a scipy .npz"
        ) from None
    except csv.Error as error:
        raise ValueError(f"{path}, line {reader.line_num}: {error}; expected a CSV table") from None


def _separator(first: str) -> str | None:
    """What separates the fields of the first line; None: blanks."""
    if "::" in first or "\t" in first:
        return "::" if "::" in first else "\t"
    if ";" in first or "," in first:
        return ";" if first.count(";") > first.count(",") else ","
    return None if len(first.split()) > 1 else ","


def _reader(text: str) -> Callable[[str], Moment]:
    """What reads the times of a table, by its first one: dates as in ISO 8601 where it is one and no number."""
    try:
        float(text)
    except ValueError:
        try:
            _date(text)
        except ValueError:
            return _number
        return _date
    return _number


def _number(text: str) -> Moment:
    try:
        return int(text)
    except ValueError:
        value = float(text)
    if not np.isfinite(value):
        raise ValueError
    return value


def _date(text: str) -> int:
    return _microseconds(datetime.fromisoformat(text.strip()))


def _microseconds(moment: datetime) -> int:
    """Since 1970; a time without a zone is taken as UTC."""
    return ((moment if moment.tzinfo else moment.replace(tzinfo=UTC)) - EPOCH) // timedelta(microseconds=1)


def _time(reader: Callable[[str], Moment], where: str, text: str) -> Moment:
    try:
        return reader(text)
    except ValueError:
        wanted = (
            "a number, as seconds since 1970" if reader is _number else "a date such as 2026-01-31 or 2026-01-31T12:00"
        )
        either = "" if reader is _date else ", or a date such as 2026-01-31T12:00 in every line"
        raise ValueError(f"{where}: the timestamp is {text!r}; expected {wanted}{either}") from None


def _weight(where: str, text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = np.nan
    if not 0 <= value <= check.FLOAT32:
        raise ValueError(f"{where}: the weight is {text!r}; expected a number of at least 0, finite in float32")
    return value


def _from_parquet(path: Path, columns: Sequence[str] | None) -> Ratings:
    file = open_parquet(path)
    with files.named(path):
        at = _columns(path, file.schema_arrow.names, columns, header=True)
        return _gathered(_of_parquet(path, file, at))


def _of_parquet(path: Path, file: Any, at: _Columns) -> Iterator[Row]:
    """The rows of a Parquet file, of which a piece is in memory at a time."""
    names, before = file.schema_arrow.names, 0
    wanted = [None if place is None else names[place] for place in at[:4]]
    for user, item, time, weight in parquet_columns(path, file, wanted):
        yield from _of_columns(user, item, None if time is None else _as_moments(time), weight, before)
        before += len(user)


def _from_archive(path: Path) -> Ratings:
    """The non-zero entries of a scipy sparse matrix; scipy reads it without pickle."""
    from scipy import sparse

    expected = "a matrix by scipy.sparse.save_npz, users x items"
    refuse_large(path, expected)
    try:
        with open(path, "rb") as file:
            matrix = check.sparse("matrix", sparse.load_npz(file))  # a stranger's indices may point anywhere
    except OSError as error:
        raise OSError(f"{path}: {error}") from None
    except Exception as error:  # zipfile, zlib, NumPy and scipy each have their own
        raise ValueError(f"{path}: no .npz that can be read ({error}); expected one of {expected}") from None
    with files.named(path):
        return from_matrix(matrix)


def _with_columns(frame: Any) -> Any:
    """A frame whose columns can be had by name: itself, or an Arrow table of what offers Arrow's streams alone.

    None of the libraries of frames is imported otherwise. Raises ValueError for one that is not computed yet.
    """
    if hasattr(frame, "collect"):  # of polars
        raise ValueError(
            f"frame: found {type(frame).__name__}, whose columns are not there yet; frame.collect() has them"
        )
    if hasattr(frame, "__getitem__") or not hasattr(frame, "__arrow_c_stream__"):
        return frame
    try:
        import pyarrow
    except ImportError:
        raise ValueError(
            f"frame: found {type(frame).__name__}, which is read with pyarrow; pip install pyarrow"
        ) from None
    return pyarrow.table(frame)


def _chosen_names(frame: Any, given: Sequence[str | None]) -> list[str | None]:
    """The names of the columns of user, item, time and weight: those given; others by their usual names, weight never.

    Raises ValueError for a name that the frame lacks, and where user or item cannot be told.
    """
    there = _column_names(frame)
    for name in given:
        if name is not None and name not in there:
            raise ValueError(f"frame: no column {name!r}; found {', '.join(map(repr, there))}")
    usual = (*_usual_names(there), None)
    names = [name if name is not None else other for name, other in zip(given, usual, strict=True)]
    for kind, name in zip(("user", "item"), names, strict=False):
        if name is None:
            raise ValueError(
                f"frame: no {kind} column; found {', '.join(map(repr, there))}; say which it is: {kind}='NAME'"
            )
    return names


def _column_names(frame: Any) -> list[str]:
    """The names of the columns of a frame; ValueError for what is none."""
    if isinstance(frame, dict):
        return [str(name) for name in frame]
    for attribute in ("column_names", "columns"):  # of Arrow; of pandas and polars
        names = getattr(frame, attribute, None)
        if isinstance(names, Iterable):
            names = list(names)
            if all(isinstance(name, str) for name in names):
                return names
    raise ValueError(
        f"frame: found {type(frame).__name__}, expected a frame of pandas or polars, an Arrow table, or a dict of columns, with"
        " names of columns"
    )


def _as_moments(values: np.ndarray) -> np.ndarray:
    """Times as numbers or datetime64: what a column holds as objects (dates of Python or pandas, texts in ISO 8601) becomes
    microseconds since 1970. Others are left to be refused where they are used.
    """
    if values.dtype.kind not in "OUT":
        return values
    moments = [_moment(value) for value in values.tolist()]
    return values if any(moment is None for moment in moments) else np.array(moments, np.int64)


def _moment(value: Any) -> int | None:
    try:
        if isinstance(value, str):
            value = datetime.fromisoformat(value.strip())
        if isinstance(value, date) and not isinstance(value, datetime):
            value = datetime(value.year, value.month, value.day)
        if not isinstance(value, datetime) or value != value:  # pandas' NaT is not itself
            return None
        return int(_microseconds(value))
    except ValueError:
        return None
