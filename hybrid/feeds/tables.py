"""Tables of ratings: which columns hold user, item and time, and the rows of a table of text."""

import csv
import itertools
from collections.abc import Callable, Iterator, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import NamedTuple

import numpy as np

from .. import check

USER = ("user", "userid", "uid")  # column names, in lower case without "_", "-" and blanks
ITEM = ("item", "itemid", "iid", "movie", "movieid", "product", "productid")
TIME = ("timestamp", "time", "unixtime", "date", "datetime")
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)

Moment = int | float


class Place(NamedTuple):
    """The columns that hold user, item and, where there are such, time and weight, counted from 0; and whether the first row
    is a header.
    """

    user: int
    item: int
    time: int | None
    header: bool
    weight: int | None = None


def rows(path: Path, columns: Sequence[str] | None = None) -> Iterator[tuple[str, str, Moment | None, float | None]]:
    """User, item, time and weight of every row of a table of text; None where there is no such column.

    columns  see `place`

    Raises OSError for an unreadable file, and ValueError, with the line number, for what is no such table.
    """
    lines = _lines(path)
    first = next(lines, None)
    if first is None:
        raise ValueError(f"{path}: empty; expected ratings, one a line")
    at = place(path, first[1], columns)
    reader: Callable[[str], Moment] | None = None
    for line, row in lines if at.header else itertools.chain([first], lines):
        if len(row) != (width := len(first[1])):
            raise ValueError(
                f"{path}, line {line}: {len(row)} fields, expected {width} as in line {first[0]}; is it cut short?"
            )
        for column, kind in ((at.user, "user"), (at.item, "item")):
            if not row[column].strip():
                raise ValueError(f"{path}, line {line}: the {kind} is empty; expected a name or number")
        time = None
        if at.time is not None:
            reader = reader or _reader(row[at.time])
            time = _moment(reader, f"{path}, line {line}", row[at.time])
        weight = None if at.weight is None else _weight(f"{path}, line {line}", row[at.weight])
        yield row[at.user].strip(), row[at.item].strip(), time, weight


def place(path: Path, first: Sequence[str], columns: Sequence[str] | None = None, header: bool = False) -> Place:
    """Which columns of a table hold user, item and time.

    first    the first row of the table
    columns  names of the header, or numbers counted from 1, of user, item and, if there are such, time and weight; an empty
             name for no time; None: by the usual names, without a weight, or the four columns of MovieLens
    header   the first row is known to be a header

    Raises ValueError where that cannot be told.
    """
    fields = [field.strip() for field in first]
    user, item, time = (None if name is None else fields.index(name) for name in usual(fields))
    named = user is not None and item is not None
    if columns is not None:
        return _chosen(path, fields, [str(column).strip() for column in columns], header or named)
    if user is not None and item is not None:
        return Place(user, item, time, True)
    if not header and user is None and item is None and len(first) == 4 and fields[3].isdigit():
        return Place(0, 1, 3, False)  # MovieLens: user, item, rating, seconds
    missing = "user" if user is None else "item"
    raise ValueError(
        f"{path}: no {missing} column; found the columns {', '.join(map(repr, fields))};"
        " expected a header with user (or userId, user_id) and item (or itemId, movieId, product_id);"
        " or say which they are: --columns NAME,NAME,NAME for user, item and time, by number (1,2,4) where there is no"
        " header; the time may be left out"
    )


def usual(fields: Sequence[str]) -> tuple[str | None, str | None, str | None]:
    """Those of some names of columns that are usual for user, item and time; None for each that is not there."""
    plain = ["".join(c for c in field.lower() if c not in "_- ") for field in fields]
    user, item, time = (
        next((fields[plain.index(name)] for name in known if name in plain), None) for known in (USER, ITEM, TIME)
    )
    return user, item, time


def _chosen(path: Path, fields: list[str], columns: list[str], header: bool) -> Place:
    if not 2 <= len(columns) <= 4 or len(set(columns)) < len(columns):
        raise ValueError(
            f"columns: found {','.join(columns)}, expected two or three that differ: user, item, time; or four with a weight"
        )
    if len(columns) == 4 and not columns[2]:  # a weight and no time
        place = _chosen(path, fields, [*columns[:2], columns[3]], header)
        return place._replace(time=None, weight=place.time)
    numbered = all(column.isdigit() for column in columns)
    known = [str(number) for number in range(1, len(fields) + 1)] if numbered else fields
    for column in columns:
        if column not in known:
            there = f"{len(fields)} columns" if numbered else f"the columns {', '.join(map(repr, fields))}"
            raise ValueError(f"{path}: no column {column!r}; found {there}; expected user, item and time among them")
    user, item, *more = (known.index(column) for column in columns)
    time, weight = [*more, None, None][:2]
    return Place(user, item, time, header or not numbered, weight)


def _lines(path: Path) -> Iterator[tuple[int, list[str]]]:
    """Line number and fields of every line that is not empty."""
    try:
        with open(path, encoding="utf-8-sig", newline="") as file:
            first = file.readline()
            file.seek(0)
            separator = _separator(first)
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


def moment(text: str) -> Moment:
    """A number, or the microseconds since 1970 of a date in ISO 8601; ValueError for neither."""
    return _reader(text)(text)


def _reader(text: str) -> Callable[[str], Moment]:
    """What reads the times of a table, by its first one: numbers, or dates as in ISO 8601."""
    try:
        float(text)
    except ValueError:
        pass
    else:
        return _number
    try:
        _date(text)
    except ValueError:
        return _number
    return _date


def _weight(where: str, text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = np.nan
    if not 0 <= value <= check.FLOAT32:
        raise ValueError(f"{where}: the weight is {text!r}; expected a number of at least 0, finite in float32")
    return value


def _number(text: str) -> Moment:
    try:
        return int(text)
    except ValueError:
        value = float(text)
    if not np.isfinite(value):
        raise ValueError
    return value


def _date(text: str) -> int:
    """Microseconds since 1970; a time without a zone is taken as UTC."""
    moment = datetime.fromisoformat(text.strip())
    moment = moment if moment.tzinfo else moment.replace(tzinfo=UTC)
    return (moment - EPOCH) // timedelta(microseconds=1)


def _moment(reader: Callable[[str], Moment], where: str, text: str) -> Moment:
    try:
        return reader(text)
    except ValueError:
        wanted = (
            "a number, as seconds since 1970" if reader is _number else "a date such as 2026-01-31 or 2026-01-31T12:00"
        )
        either = "" if reader is _date else ", or a date such as 2026-01-31T12:00 in every line"
        raise ValueError(f"{where}: the timestamp is {text!r}; expected {wanted}{either}") from None
