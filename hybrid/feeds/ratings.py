"""Ratings of items by users from files, frames and arrays, and the resulting histories.

The value of a rating is used as a weight only if its column is named as such.
"""

import contextlib
import csv
import itertools
import re
import warnings
from array import array
from collections.abc import Callable, Iterable, Iterator, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from .. import check
from ..storage import files
from ..storage.tables import open_parquet, parquet_columns
from .histories import Histories
from .splits import HeldOut, Split, split, split_by_time

__all__ = ["HeldOut", "Histories", "Ratings", "Split", "from_columns", "from_frame", "from_matrix", "histories", "load"]
__all__ += ["split", "split_by_time"]

USER = ("user", "userid", "uid")  # usual column names, in lower case without "_", "-" and blanks
ITEM = ("item", "itemid", "iid", "movie", "movieid", "product", "productid")
TIME = ("timestamp", "time", "unixtime", "date", "datetime")
TYPED = re.compile(r":(token|float)(_seq)?$")  # suffixes of the names in the header of a RecBole .inter
USERS = re.compile(r"(?:1,2|1)-")  # columns of a file with one line per user
ONE_FIELD = ""  # the separator of a line without one
MISSING = ("None", "nan", "NaT", "<NA>")  # spellings of missing values, including those of pandas
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)

Moment = int | float
Row = tuple[str, str, Moment | None, float | None]  # user, item, time, weight; None: no such column


class Ratings(NamedTuple):
    """N ratings in file order: user[n] rated item[n] at time[n].

    user    (N,) int32, ids from 0 to U - 1
    item    (N,) int32, ids from 0 to I - 1
    time    (N,) int64 or float64; the row number if the file has no times
    users   U names, in the order of first appearance
    items   I names by descending count, equal counts in alphabetical order
    weight  (N,) float32, the weight of each rating; None: all are 1
    """

    user: np.ndarray
    item: np.ndarray
    time: np.ndarray
    users: list[str]
    items: list[str]
    weight: np.ndarray | None = None


def histories(ratings: Ratings) -> Histories:
    """Returns each user's history in time order, equal times in file order. Raises ValueError for anything but Ratings."""
    if not isinstance(ratings, Ratings):
        raise ValueError(f"ratings: found {type(ratings).__name__}, expected Ratings, by load, from_columns, ...")
    order = np.lexsort((np.arange(len(ratings.user)), ratings.time, ratings.user))
    at = np.concatenate([[0], np.cumsum(np.bincount(ratings.user, minlength=len(ratings.users)))])
    weight = None if ratings.weight is None else ratings.weight[order]
    return Histories(ratings.item[order], at, ratings.users, ratings.items, weight, ratings.time[order])


def load(path: str | Path, columns: Sequence[str] | None = None) -> Ratings:
    """Reads a file of ratings.

    path     MovieLens' u.data or ratings.dat; a text table such as RecBole's .inter, separated by tabs, semicolons, commas, ::
             or blanks as its first line with several fields shows; a text with one line per user; or a Parquet file,
             by pyarrow
    columns  columns of a table for user, item and, if present, time and weight: header names, or numbers from 1, for example
             ("who", "what") or (1, 2, 4, 3), with "" for no time. None: the usual names in the header, such as user, userId,
             user_id, item, movieId, product_id, timestamp, time, date; then there is no weight. ("1", "2-"): each line holds a
             user, then the user's items in order; ("1-",): each line holds only items, and its number is the user's name

    Times are numbers, or ISO 8601 dates. Other columns are ignored. Tables are read piecewise. Raises OSError for an unreadable
    file. Raises ValueError for a row that is too short or too long, with its line number, and for columns that cannot be
    identified.
    """
    path = Path(path)
    files.expect_file(path)
    with open(path, "rb") as file:
        begin = file.read(4)
    if begin == b"PAR1":
        ratings = _gathered(_of_parquet(path, columns))
    else:
        ratings = _gathered(_of_text(path, columns))
        if not len(ratings.user):
            raise ValueError(f"{path}: no ratings; expected one per line")
    return ratings


def from_columns(
    user: ArrayLike, item: ArrayLike, time: ArrayLike | None = None, weight: ArrayLike | None = None
) -> Ratings:
    """Returns ratings from columns of one length N: lists, arrays, or columns of a data frame.

    user, item  (N,) names or numbers
    time        (N,) numbers or datetime64; None: in the given order
    weight      (N,) numbers of at least 0, the weight of each rating as a target; None: all are 1

    Raises ValueError for columns of different lengths, and for a missing value (None, NaN, NaT or empty), with its position.
    """
    return _gathered(_of_columns(user, item, time, weight))


def from_frame(
    frame: Any, *, user: str | None = None, item: str | None = None, time: str | None = None, weight: str | None = None
) -> Ratings:
    """Returns ratings from a pandas or polars frame, an Arrow table or batch, or a dict of columns.

    user, item, time, weight  column names; None: the usual names, see `load`; without a name there is no weight

    Times are numbers, dates of any kind, or ISO 8601 texts. Raises ValueError for missing or unidentified columns, and as
    `from_columns` does.
    """
    if hasattr(frame, "collect"):  # polars' lazy frame
        raise ValueError(f"frame: found {type(frame).__name__}, which has no columns yet; frame.collect() has them")
    names = _chosen_names(frame, (user, item, time, weight))
    users, items, times, weights = (
        None if name is None else np.asarray(check.unmasked(name, frame[name])) for name in names
    )
    return _gathered(_of_columns(users, items, None if times is None else _as_moments(times), weights))


def from_matrix(matrix: Any) -> Ratings:
    """Returns ratings from a scipy sparse matrix, users x items: each nonzero, in the order of the matrix's entries.

    Raises ValueError as check.sparse does, and for a matrix without nonzeros.
    """
    entries = check.sparse("matrix", matrix).tocoo()
    user, item = entries.row[entries.data != 0], entries.col[entries.data != 0]
    if not len(user):
        raise ValueError(f"no ratings: the matrix {matrix.shape} is all zero; expected users x items")
    return from_columns(user, item)


def _gathered(rows: Iterable[Row]) -> Ratings:
    """Returns the ratings of rows, with the items numbered by descending count."""
    users: dict[str, int] = {}
    items: dict[str, int] = {}
    user_ids, item_ids, weights = array("i"), array("i"), array("f")
    times: list[Moment] = []
    for user, item, time, counted in rows:
        user_ids.append(users.setdefault(user, len(users)))
        item_ids.append(items.setdefault(item, len(items)))
        if time is not None:
            times.append(time)
        if counted is not None:
            weights.append(counted)
    met, names = np.array(item_ids, np.int32), list(items)
    counts = np.bincount(met, minlength=len(names))
    order = sorted(range(len(names)), key=lambda item: (-counts[item], names[item]))
    rank = np.empty(len(order), np.int32)
    rank[order] = np.arange(len(order))
    moments = np.array(times) if times else np.arange(len(user_ids))
    weight = np.array(weights, np.float32) if weights else None
    ordered = [names[item] for item in order]
    return Ratings(np.array(user_ids, np.int32), rank[met], moments, list(users), ordered, weight)


def _of_columns(user: Any, item: Any, time: Any, weight: Any, before: int = 0) -> Iterator[Row]:
    """Yields the rows of columns; before: the number of preceding rows, for messages."""
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
    """Returns the values as names; ValueError for a missing one."""
    names = []
    for at, value in enumerate(values.tolist()):
        value = value.decode() if isinstance(value, bytes) else value  # Parquet without the mark of UTF-8
        name = "" if isinstance(value, list | tuple | dict | np.ndarray) else str(value).strip()
        if not name or (name in MISSING and not isinstance(value, str)):
            raise ValueError(f"{kind}[{before + at}]: found {value!r}, expected a name or number")
        names.append(name)
    return names


def _times(name: str, values: np.ndarray, before: int) -> list[Moment]:
    """Returns the times as numbers; ValueError for a missing one."""
    if values.dtype.kind not in "iufM":
        raise ValueError(f"{name}: found {values.dtype}, expected numbers or datetime64")
    bad = np.isnat(values) if values.dtype.kind == "M" else ~np.isfinite(values)
    bad |= values >= 2**63 if values.dtype.kind == "u" else False
    if bad.any():
        raise ValueError(f"{name}[{before + bad.argmax()}]: found {values[bad.argmax()]}, expected a time")
    return (values.view(np.int64) if values.dtype.kind == "M" else values).tolist()


def _weights(name: str, values: np.ndarray, before: int) -> list[float]:
    if values.dtype.kind not in "iuf":
        raise ValueError(f"{name}: found {values.dtype}, expected numbers of at least 0")
    bad = ~((values >= 0) & (values <= check.FLOAT32))
    if bad.any():
        n = int(bad.argmax())
        raise ValueError(f"{name}[{before + n}]: found {values[n]}, expected a number of at least 0, finite in float32")
    return values.tolist()


class _Columns(NamedTuple):
    """The column numbers, from 0, of user, item, time and weight; and whether the first row is a header."""

    user: int
    item: int
    time: int | None
    weight: int | None
    header: bool


def _columns(path: Path, first: Sequence[str], columns: Sequence[str] | None = None, header: bool = False) -> _Columns:
    """Identifies the columns of a table by its first row, which `header` classifies; ValueError if it cannot."""
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
    """Returns a frame's user and item columns by their usual names; None for a missing column, or for no frame."""
    try:
        return _usual_names(_column_names(frame))[:2]
    except ValueError:
        return None, None


def _usual_names(fields: Sequence[str]) -> tuple[str | None, str | None, str | None]:
    """Returns the usual names for user, item and time among the fields; None for each that is missing."""
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
    """Yields the rows of a text table. Raises OSError for an unreadable file, ValueError, with its line, for malformed text."""
    lines = _lines(path)
    if columns is not None and USERS.fullmatch(",".join(map(str, columns))):
        yield from _of_users(path, lines, len(columns) - 1)
        return
    first = next(lines, None)
    if first is None:
        raise ValueError(f"{path}: empty; expected ratings, one per line")
    at, width = _columns(path, first[1], columns), len(first[1])
    reader: Callable[[str], Moment] | None = None
    for line, row in lines if at.header else itertools.chain([first], lines):
        where = f"{path}, line {line}"
        if len(row) != width:
            raise ValueError(f"{where}: {len(row)} fields, expected {width} as in line {first[0]}; is it truncated?")
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
    """Yields the rows of a text with one line per user, whose items start at field `begin`; the user's name precedes them."""
    for line, fields in lines:
        names = [name.strip() for name in fields]
        while names and not names[-1]:
            names.pop()
        if not all(names):
            raise ValueError(f"{path}, line {line}: a name is empty; expected a user and his items in one line")
        user = names[0] if begin and names else str(line)
        yield from ((user, item, None, None) for item in names[begin:])


def _lines(path: Path) -> Iterator[tuple[int, list[str]]]:
    """Yields the line number and the fields of every nonempty line."""
    try:
        with open(path, encoding="utf-8-sig", newline="") as file:
            separator = next((found for line in file if (found := _separator(line)) != ONE_FIELD), ",")
            file.seek(0)
            if separator in ("::", None):
                for line, text in enumerate(file, 1):
                    if text.strip():
                        yield line, text.rstrip("\r\n").split(separator)
                return
            reader = csv.reader(file, delimiter=separator, strict=True)
            yield from ((reader.line_num, row) for row in reader if row)
    except UnicodeDecodeError as error:
        raise ValueError(f"{path}: not UTF-8 ({error.reason}); expected text or Parquet") from None
    except csv.Error as error:
        raise ValueError(
            f"{path}, line {reader.line_num}: {error}; expected a CSV table, with quotes in pairs"
        ) from None


def _separator(line: str) -> str | None:
    """Returns the field separator of a line; None: blanks."""
    if "::" in line or "\t" in line:
        return "::" if "::" in line else "\t"
    if ";" in line or "," in line:
        return ";" if line.count(";") > line.count(",") else ","
    return None if len(line.split()) > 1 else ONE_FIELD


def _reader(text: str) -> Callable[[str], Moment]:
    """Returns the parser for the times of a table by its first value: ISO 8601 dates if it is one and not a number."""
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
    value: Moment
    try:
        value = int(text)
    except ValueError:
        value = float(text)
    if not -(2**63) <= value < 2**63:
        raise ValueError
    return value


def _date(text: str) -> int:
    """Returns the microseconds since 1970; a time without a zone is taken as UTC."""
    moment = datetime.fromisoformat(text.strip())
    return ((moment if moment.tzinfo else moment.replace(tzinfo=UTC)) - EPOCH) // timedelta(microseconds=1)


def _time(reader: Callable[[str], Moment], where: str, text: str) -> Moment:
    try:
        return reader(text)
    except ValueError:
        date = "a date such as 2026-01-31T12:00"
        wanted = f"a number, as seconds since 1970, or {date} in every line" if reader is _number else date
        raise ValueError(f"{where}: the timestamp is {text!r}; expected {wanted}") from None


def _weight(where: str, text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = np.nan
    if not 0 <= value <= check.FLOAT32:
        raise ValueError(f"{where}: the weight is {text!r}; expected a number of at least 0, finite in float32")
    return value


def _of_parquet(path: Path, columns: Sequence[str] | None) -> Iterator[Row]:
    """Yields the rows of a Parquet file piecewise."""
    file = open_parquet(path)
    names, before = file.schema_arrow.names, 0
    with files.named(path):
        wanted = [None if at is None else names[at] for at in _columns(path, names, columns, header=True)[:4]]
        for user, item, time, weight in parquet_columns(path, file, wanted):
            yield from _of_columns(user, item, None if time is None else _as_moments(time), weight, before)
            before += len(user)


def _chosen_names(frame: Any, given: Sequence[str | None]) -> list[str | None]:
    """Returns the given or usual names of user, item, time, and the given one of weight; ValueError for missing ones."""
    there = _column_names(frame)
    found = ", ".join(map(repr, there))
    for name in given:
        if name is not None and name not in there:
            raise ValueError(f"frame: no column {name!r}; found {found}")
    usual = (*_usual_names(there), None)
    names = [name if name is not None else other for name, other in zip(given, usual, strict=True)]
    for kind, name in zip(("user", "item"), names, strict=False):
        if name is None:
            raise ValueError(f"frame: no {kind} column; found {found}; say which it is: {kind}='NAME'")
    return names


def _column_names(frame: Any) -> list[str]:
    """Returns the column names of a frame; ValueError for anything else."""
    if isinstance(frame, dict):
        return [str(name) for name in frame]
    for attribute in ("column_names", "columns"):  # Arrow; pandas and polars
        names = getattr(frame, attribute, None)
        if isinstance(names, Iterable):
            names = list(names)
            if all(isinstance(name, str) for name in names):
                return names
    raise ValueError(
        f"frame: found {type(frame).__name__}, expected a frame of pandas or polars, an Arrow table, or a dict of columns"
    )


def _as_moments(values: np.ndarray) -> np.ndarray:
    """Returns times as numbers or datetime64: texts as in files, objects (Python or pandas dates, ISO 8601 texts) as datetime64
    in UTC. Other values are unchanged, and rejected on use.
    """
    if values.dtype.kind not in "OUT":
        return values
    if values.size and isinstance(values[0], str) and _reader(values[0]) is _number:
        with contextlib.suppress(TypeError, ValueError):
            return np.array([_number(text) for text in values.tolist()])
        return values
    with warnings.catch_warnings(), contextlib.suppress(TypeError, ValueError):
        warnings.simplefilter("ignore", UserWarning)  # of zones, which NumPy converts to UTC
        return values.astype("datetime64[us]")
    return values
