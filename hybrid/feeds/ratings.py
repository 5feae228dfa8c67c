"""Who rated what, and when: ratings from files, frames and arrays. The value of a rating is a weight where it is named so."""

import csv
import itertools
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
from .interactions import Histories, Ratings, histories

# Tables of ratings: which columns hold user, item and time, and the rows of a table of text.

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
    at = column_places(path, first[1], columns)
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
            time = _tables_moment(reader, f"{path}, line {line}", row[at.time])
        weight = None if at.weight is None else _weight(f"{path}, line {line}", row[at.weight])
        yield row[at.user].strip(), row[at.item].strip(), time, weight


def column_places(
    path: Path, first: Sequence[str], columns: Sequence[str] | None = None, header: bool = False
) -> Place:
    """Which columns of a table hold user, item and time.

    first    the first row of the table
    columns  names of the header, or numbers counted from 1, of user, item and, if there are such, time and weight; an empty
             name for no time; None: by the usual names, without a weight, or the four columns of MovieLens
    header   the first row is known to be a header

    Raises ValueError where that cannot be told.
    """
    fields = [field.strip() for field in first]
    user, item, time = (None if name is None else fields.index(name) for name in usual_names(fields))
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


def usual_names(fields: Sequence[str]) -> tuple[str | None, str | None, str | None]:
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


def _tables_moment(reader: Callable[[str], Moment], where: str, text: str) -> Moment:
    try:
        return reader(text)
    except ValueError:
        wanted = (
            "a number, as seconds since 1970" if reader is _number else "a date such as 2026-01-31 or 2026-01-31T12:00"
        )
        either = "" if reader is _date else ", or a date such as 2026-01-31T12:00 in every line"
        raise ValueError(f"{where}: the timestamp is {text!r}; expected {wanted}{either}") from None


# Columns of data frames: pandas, polars, Arrow tables, dicts of columns. None of these libraries is imported for it.


def names(frame: Any) -> list[str]:
    """The names of the columns of a frame; ValueError for what is none."""
    if isinstance(frame, dict):
        return [str(name) for name in frame]
    for attribute in ("column_names", "columns"):  # of Arrow; of pandas and polars
        found = getattr(frame, attribute, None)
        if found is not None and not callable(found) and hasattr(found, "__iter__"):
            found = list(found)
            if all(isinstance(name, str) for name in found):
                return found
    raise ValueError(
        f"frame: found {type(frame).__name__}, expected a frame of pandas or polars, an Arrow table, or a dict of columns, with"
        " names of columns"
    )


def standard(frame: Any) -> Any:
    """A frame whose columns can be had by name: itself, or an Arrow table of what offers Arrow's streams alone.

    Raises ValueError for one that is not computed yet.
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


def column(frame: Any, name: str) -> np.ndarray:
    """A column of a frame as an array."""
    return np.asarray(frame[name])


def chosen(frame: Any, said: Sequence[str | None]) -> list[str | None]:
    """The names of the columns of user, item, time and weight: those said; others by their usual names, weight never.

    Raises ValueError for a name that the frame lacks, and where user or item cannot be told.
    """
    there = names(frame)
    for name in said:
        if name is not None and name not in there:
            raise ValueError(f"frame: no column {name!r}; found {', '.join(map(repr, there))}")
    usual = usual_names(there)
    found = [name if name is not None else other for name, other in zip(said, (*usual, None), strict=True)]
    for kind, name in zip(("user", "item"), found, strict=False):
        if name is None:
            raise ValueError(
                f"frame: no {kind} column; found {', '.join(map(repr, there))}; say which it is: {kind}='NAME'"
            )
    return found


def moments(values: np.ndarray) -> np.ndarray:
    """Times as numbers or datetime64: what a column holds as objects (dates of Python or pandas, texts in ISO 8601) becomes
    microseconds since 1970, those without a zone taken as UTC. Others are left to be refused where they are used.
    """
    if values.dtype.kind not in "OUT":
        return values
    found = [_moment(value) for value in values.tolist()]
    return values if any(moment is None for moment in found) else np.array(found, np.int64)


def _moment(value: Any) -> int | None:
    try:
        if isinstance(value, str):
            value = datetime.fromisoformat(value.strip())
        if isinstance(value, date) and not isinstance(value, datetime):
            value = datetime(value.year, value.month, value.day)
        if not isinstance(value, datetime) or value != value:  # pandas' NaT is not itself
            return None
        moment = value if value.tzinfo else value.replace(tzinfo=UTC)
        return int((moment - EPOCH) // timedelta(microseconds=1))
    except ValueError:
        return None


# Which items of histories are learned from, which choose a model, and which test it.
#
# What tests is held out of what validates too, and whoever has nothing left before an item is not measured by it.

LEAST = 3  # items of a user of whom two are held out, to choose and to test: one is left to learn from
TRAIN, VALID, TEST = 0, 1, 2


class HeldOut(NamedTuple):
    """n items held out of the histories; `split` holds out one of a user, others any number.

    user  (n,) int32, numbers of users, in rising order
    item  (n,) int32, an item of each
    """

    user: np.ndarray
    item: np.ndarray


class Split(NamedTuple):
    """Histories to learn from, and the items held out of them: for validation, by which settings are chosen, and for test.

    train  histories without the items held out
    valid  items held out of them to choose by
    seen   what comes before the test: train and valid
    test   items held out to test with
    """

    train: Histories
    valid: HeldOut
    seen: Histories
    test: HeldOut


def split(whole: Histories) -> Split:
    """Hold out the last item of every user who has at least 3, for test, and the one before it, for validation."""
    part = np.zeros(len(whole.item), np.int8)
    last = whole.at[1:][np.diff(whole.at) >= LEAST] - 1
    part[last - 1], part[last] = VALID, TEST
    return _parted(whole, part)


def split_by_ratio(whole: Histories, *, test: float = 0.2, valid: float = 0.1, seed: int | None = None) -> Split:
    """Hold out shares of the items of every user who has at least 3: the last ones for test, those before for validation.

    test, valid  shares; a share above 0 holds out at least one item of each, and one at least is left to learn from
    seed         draws which items of each user, instead of the last; None: the last

    Raises ValueError for shares that sum to 1 or more.
    """
    _check_shares(test, valid)
    sizes = np.diff(whole.at)
    tests, valids = (_share(sizes, share) for share in (test, valid))
    tests = np.minimum(tests, np.maximum(sizes - valids - 1, 0))
    tests, valids = (np.where(sizes >= LEAST, number, 0) for number in (tests, valids))
    user = _users(whole)
    order = np.arange(len(whole.item))
    if seed is not None:
        order = np.lexsort((np.random.default_rng(seed).random(len(order)), user))
    left = np.empty(len(order), np.int64)  # items of the same user from each on, in this order
    left[order] = whole.at[1:][user] - np.arange(len(order))
    part = np.where(left <= tests[user], TEST, np.where(left <= (tests + valids)[user], VALID, TRAIN))
    return _parted(whole, part)


def split_drawn(whole: Histories, *, test: float = 0.2, valid: float = 0.1, seed: int = 0) -> Split:
    """Hold out shares of all items, drawn from all histories together. Raises ValueError for shares that sum to 1 or more."""
    _check_shares(test, valid)
    drawn = np.random.default_rng(seed).permutation(len(whole.item))
    tests, valids = round(len(drawn) * test), round(len(drawn) * valid)
    part = np.zeros(len(drawn), np.int8)
    part[drawn[:tests]], part[drawn[tests : tests + valids]] = TEST, VALID
    return _parted(whole, part)


def split_by_time(whole: Histories, *, test: float = 0.2, valid: float = 0.1, since: float | None = None) -> Split:
    """Hold out what came last, of all users together: what tests comes after what validates, and that after the rest.

    test, valid  shares of all items; items of equal times stay together. A share above 0 tests one item at least, 0 none
    since        items from this moment on are the test instead, whatever their share; a number as in `Histories.time`

    Raises ValueError for histories without times or items, shares that sum to 1 or more, and a moment that leaves nothing to
    learn from or to test with.
    """
    _check_shares(0 if since is not None else test, valid)
    if whole.time is None:
        raise ValueError(
            "histories: found no times, expected some to split by; histories(ratings) keeps those of ratings"
        )
    if not len(whole.item):
        raise ValueError(f"histories: found no item of {len(whole.users)} users, expected some to split by their times")
    times = np.sort(whole.time)
    n = len(times)
    begin = _test_begins(times, test) if since is None else _within(times, since)
    before = int(np.searchsorted(times, begin))
    middle = times[before - min(round(n * valid), before - 1)] if round(n * valid) else begin
    return _parted(whole, np.where(whole.time >= begin, TEST, np.where(whole.time >= middle, VALID, TRAIN)))


def _test_begins(times: np.ndarray, test: float) -> Any:
    """The moment from which on a share of the items came, given their times in order."""
    if not test:
        return np.inf
    begin = times[len(times) - max(round(len(times) * test), 1)]
    if begin == times[0]:
        raise ValueError(
            f"test: found {test:g}, which takes all items from {begin} on, the first moment of all; expected a share that "
            "leaves some before it, or another way to split where times are equal"
        )
    return begin


def _within(times: np.ndarray, since: float) -> float:
    """The moment itself; ValueError where nothing came before it, or nothing since."""
    if not times[0] < since <= times[-1]:
        raise ValueError(f"since: found {since}, expected a moment after {times[0]} and up to {times[-1]}")
    return since


def _parted(whole: Histories, part: np.ndarray) -> Split:
    """The split by the part that each item belongs to."""
    train, seen = whole.only(part == TRAIN), whole.only(part != TEST)
    return Split(train, _held(whole, part == VALID, train), seen, _held(whole, part == TEST, seen))


def _held(whole: Histories, chosen: np.ndarray, before: Histories) -> HeldOut:
    """The items chosen, of users who have something before."""
    user = _users(whole)
    chosen = chosen & (np.diff(before.at) > 0)[user]
    return HeldOut(user[chosen], whole.item[chosen])


def _users(whole: Histories) -> np.ndarray:
    """The user of every item."""
    return np.repeat(np.arange(len(whole.users), dtype=np.int32), np.diff(whole.at))


def _share(sizes: np.ndarray, share: float) -> np.ndarray:
    return np.maximum(np.rint(sizes * share).astype(np.int64), 1) if share else np.zeros(len(sizes), np.int64)


def _check_shares(test: float, valid: float) -> None:
    if not (0 <= test < 1 and 0 <= valid < 1 and test + valid < 1):
        raise ValueError(f"split: found test {test} and valid {valid}, expected shares that sum to less than 1")


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
        ratings = _gathered(rows(path, columns))
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
    frame = standard(frame)
    named = chosen(frame, (user, item, time, weight))
    columns = [None if name is None else column(frame, name) for name in named]
    if columns[2] is not None:
        columns[2] = moments(columns[2])
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
    file = open_parquet(path)
    with files.named(path):
        place = column_places(path, file.schema_arrow.names, columns, header=True)
        return _gathered(_of_parquet(path, file, place))


def _of_parquet(path: Path, file: Any, at: Place) -> Iterator[Row]:
    """The rows of a Parquet file, of which a piece is in memory at a time."""
    names, before = file.schema_arrow.names, 0
    wanted = [None if place is None else names[place] for place in (at.user, at.item, at.time, at.weight)]
    for user, item, time, weight in parquet_columns(path, file, wanted):
        yield from _rows(user, item, None if time is None else moments(time), weight, before)
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
