"""Who rated what, and when: files of ratings, and histories. A rating is a positive; its value is not used."""

import csv
import hashlib
import itertools
import json
from array import array
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import numpy as np

USER = ("user", "userid", "uid")  # column names, in lower case without "_", "-" and blanks
ITEM = ("item", "itemid", "iid", "movie", "movieid", "product", "productid")
TIME = ("timestamp", "time", "unixtime")


class Ratings(NamedTuple):
    """N ratings in file order: user[n] rated item[n] at time[n].

    user, item    (N,) int32, dense ids
    time          (N,) int64 or float64; where the file has no times, the number of the row
    users, items  what the file calls them: users by first appearance, items by descending count, then by name
    """

    user: np.ndarray
    item: np.ndarray
    time: np.ndarray
    users: list[str]
    items: list[str]


class Histories(NamedTuple):
    """The items of each user in the order of time: user u has item[at[u] : at[u + 1]].

    item (N,) int32; at (U + 1,) int64; users, items: see `Ratings`
    """

    item: np.ndarray
    at: np.ndarray
    users: list[str]
    items: list[str]

    @property
    def sha256(self) -> str:
        """Digest of all four."""
        digest = hashlib.sha256(json.dumps([self.users, self.items]).encode())
        digest.update(self.item.data)
        digest.update(self.at.data)
        return digest.hexdigest()


class HeldOut(NamedTuple):
    """The last item of each of n users, left out of the training histories; user, item (n,) int32."""

    user: np.ndarray
    item: np.ndarray


def load(path) -> Ratings:
    """Read MovieLens u.data (tabs) or ratings.dat (::), a CSV file with a header, or a scipy .npz (users x items).

    The columns of a CSV file are found by name: user, userId, user_id ..., item, itemId, movieId, product_id ..., and,
    where there is one, timestamp; other columns are not used. Of an .npz, what is not zero counts, in file order.

    Raises OSError for an unreadable file, and ValueError, with the line number, for a row that is cut short or ragged,
    for columns that cannot be told, and for a file without ratings, or with fewer than two items.
    """
    path = Path(path)
    with open(path, "rb") as file:
        zipped = file.read(4) == b"PK\3\4"
    ratings = _from_matrix(path) if zipped or path.suffix == ".npz" else _from_table(path)
    if len(ratings.items) < 2:
        raise ValueError(f"{path}: {len(ratings.items)} different items; expected at least 2")
    return ratings


def histories(ratings: Ratings) -> Histories:
    """All ratings, user by user in the order of time; equal times in file order."""
    order = np.lexsort((np.arange(len(ratings.user)), ratings.time, ratings.user))
    at = np.concatenate([[0], np.cumsum(np.bincount(ratings.user, minlength=len(ratings.users)))])
    return Histories(ratings.item[order], at, ratings.users, ratings.items)


def leave_last_out(ratings: Ratings) -> tuple[Histories, HeldOut]:
    """Training histories, and the last item of every user with at least two ratings (of equal times: the later row)."""
    whole = histories(ratings)
    held = np.diff(whole.at) >= 2
    last = whole.at[1:][held] - 1
    at = whole.at - np.concatenate([[0], np.cumsum(held)])
    train = Histories(np.delete(whole.item, last), at, whole.users, whole.items)
    return train, HeldOut(np.flatnonzero(held).astype(np.int32), whole.item[last])


class _Names:
    """Dense ids of names, in the order of first appearance."""

    def __init__(self) -> None:
        self.ids: dict[str, int] = {}
        self.rows = array("i")

    def add(self, name: str) -> None:
        self.rows.append(self.ids.setdefault(name, len(self.ids)))


def _from_table(path: Path) -> Ratings:
    users, items = _Names(), _Names()
    times: list[int | float] = []
    rows = _rows(path)
    first = next(rows, (1, [""]))
    columns, header = _columns(path, first[1])
    for line, row in rows if header else itertools.chain([first], rows):
        if len(row) != (width := len(first[1])):
            raise ValueError(
                f"{path}, line {line}: {len(row)} fields, expected {width} as in line {first[0]}; is it cut short?"
            )
        for names, column, kind in ((users, columns[0], "user"), (items, columns[1], "item")):
            if not (name := row[column].strip()):
                raise ValueError(f"{path}, line {line}: the {kind} is empty; expected a name or number")
            names.add(name)
        if columns[2] is not None:
            times.append(_number(path, line, row[columns[2]]))
    if not users.rows:
        raise ValueError(f"{path}: no ratings; expected one a line")
    user, item = (np.array(names.rows, np.int32) for names in (users, items))
    time = np.arange(len(user)) if columns[2] is None else np.array(times)
    return _most_rated_first(Ratings(user, item, time, list(users.ids), list(items.ids)))


def _rows(path: Path) -> Iterator[tuple[int, list[str]]]:
    """Line number and fields of every line that is not empty."""
    try:
        with open(path, encoding="utf-8-sig", newline="") as file:
            first = file.readline()
            file.seek(0)
            if "::" in first:
                for line, text in enumerate(file, 1):
                    if text.strip():
                        yield line, text.rstrip("\r\n").split("::")
                return
            reader = csv.reader(file, delimiter="\t" if "\t" in first else ",", strict=True)
            yield from ((reader.line_num, row) for row in reader if row)
    except UnicodeDecodeError as error:
        raise ValueError(f"{path}: not UTF-8 ({error.reason}); expected a table of text, or a scipy .npz") from None
    except csv.Error as error:
        raise ValueError(f"{path}, line {reader.line_num}: {error}; expected a CSV table with a header") from None


def _columns(path: Path, first: list[str]) -> tuple[tuple[int, int, int | None], bool]:
    """Where user, item and time stand, and whether the first row is a header."""
    if first == [""]:
        raise ValueError(f"{path}: empty; expected ratings, one a line")
    names = ["".join(c for c in field.lower() if c not in "_- ") for field in first]
    user, item, time = (next((names.index(n) for n in known if n in names), None) for known in (USER, ITEM, TIME))
    if user is not None and item is not None:
        return (user, item, time), True
    if user is None and item is None and len(first) == 4 and first[3].strip().isdigit():
        return (0, 1, 3), False  # MovieLens: user, item, rating, seconds
    missing = "user" if user is None else "item"
    raise ValueError(
        f"{path}: no {missing} column; found the columns {', '.join(map(repr, first))};"
        " expected a header with user (or userId, user_id) and item (or itemId, movieId, product_id);"
        " add or rename it, or give MovieLens rows of user, item, rating, timestamp"
    )


def _number(path: Path, line: int, text: str) -> int | float:
    try:
        return int(text)
    except ValueError:
        pass
    try:
        value = float(text)
    except ValueError:
        value = float("nan")
    if not np.isfinite(value):
        raise ValueError(f"{path}, line {line}: the timestamp is {text!r}; expected a number, as seconds since 1970")
    return value


def _from_matrix(path: Path) -> Ratings:
    """The non-zero entries of a scipy sparse matrix; scipy reads it without pickle."""
    from scipy import sparse

    try:
        with open(path, "rb") as file:
            matrix = sparse.load_npz(file)
        if hasattr(matrix, "check_format"):
            matrix.check_format(full_check=True)  # a stranger's indices may point anywhere
        entries = matrix.tocoo()
        user, item = entries.row[entries.data != 0], entries.col[entries.data != 0]
    except OSError as error:
        raise OSError(f"{path}: {error}") from None
    except Exception as error:  # zipfile, zlib, NumPy and scipy each have their own
        raise ValueError(
            f"{path}: no scipy sparse matrix ({error}); expected a file of scipy.sparse.save_npz, users x items"
        ) from None
    if not len(user):
        raise ValueError(f"{path}: no ratings: the matrix {matrix.shape} is all zero; expected users x items")
    known, user = _dense(user)
    names, item = _dense(item)
    return _most_rated_first(Ratings(user, item, np.arange(len(user)), known, names))


def _dense(numbers: np.ndarray) -> tuple[list[str], np.ndarray]:
    found, ids = np.unique(numbers, return_inverse=True)
    return [str(number) for number in found], ids.astype(np.int32)


def _most_rated_first(ratings: Ratings) -> Ratings:
    """Renumber the items, so that the rows used most lie together."""
    counts = np.bincount(ratings.item, minlength=len(ratings.items))
    order = sorted(range(len(counts)), key=lambda item: (-counts[item], ratings.items[item]))
    rank = np.empty(len(order), np.int32)
    rank[order] = np.arange(len(order))
    return ratings._replace(item=rank[ratings.item], items=[ratings.items[item] for item in order])
