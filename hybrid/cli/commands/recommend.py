"""The command `hybrid recommend`: next items for all users, some, or new ones."""

import argparse
import csv
import importlib.util
import io
import json
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from ... import console
from ...settings import names
from ...storage import files
from ...use.answers import Ranked
from ..arguments import Parser
from . import _use

COLUMNS = ("user", "rank", "item", "score")


def add(command: Parser) -> None:
    """Adds the options."""
    _use.add_run(command)
    _use.add_k(command, "items per user")
    command.add_argument("--include-seen", action="store_true", help="also recommend items that the user has had")
    for name, what in (("allowed", "the only items that may be recommended"), ("forbidden", "items that may not be")):
        command.add_argument(f"--{name}", type=_listed, metavar="A,B,C|@FILE", help=f"{what}; @FILE: one per line")
    command.add_argument(
        "--out", metavar="FILE", help="write user, rank, item, score to a .csv or .parquet file (default: print)"
    )
    command.add_overwrite()
    whom = command.add_argument_group("users (default: all users of the run's ratings)")
    whom.add_argument("--users", type=_listed, metavar="A,B,C|@FILE", help="these users")
    whom.add_argument(
        "--history",
        type=_listed,
        action="append",
        metavar="ITEM,ITEM",
        help="a new user with these items, oldest first",
    )
    whom.add_argument(
        "--ratings",
        metavar="FILE",
        help="the users of this file, such as newer ratings, or the run's ratings if the file was moved",
    )
    whom.add_argument(
        "--columns", type=names, metavar="USER,ITEM[,TIME]", help="columns of --ratings (default: as in training)"
    )


def run(given: argparse.Namespace) -> int:
    """Prints or writes the recommendations."""
    _refuse(given)
    model = _use.opened(given, "recommend", "recommend")
    if given.ratings and (unknown := model.remember(given.ratings, given.columns)):
        console.note(f"{given.ratings}: {unknown:,} ratings of items that the model does not know are left out")
    k = _use.at_most(given.k, len(model.items), "items")
    only = {"exclude_seen": not given.include_seen, "allowed": given.allowed, "forbidden": given.forbidden or ()}
    for name in ("allowed", "forbidden"):
        only[name] = _known(name, only[name], model.items)
    if given.history:
        given.history = [_known("history", items, model.items) for items in given.history]
        many, found = len(given.history), model.recommend_to(given.history, k, **only)
        new = ["new user"] if many == 1 else [f"new user {number}" for number in range(1, many + 1)]
        parts: Iterable[Ranked] = [found._replace(asked=new)]
    else:
        parts = model.recommendations(given.users, k, **only)
    if given.out:
        rows = write(given.out, parts, COLUMNS)
        report = {"rows": rows, "out": given.out}
        print(json.dumps(report, indent=1) if given.json else f"{rows:,} recommendations -> {given.out}")
    else:
        _print_json(parts) if given.json else _print(parts)
    return 0


def _refuse(given: argparse.Namespace) -> None:
    """Raises ValueError for contradictory options or an unwritable output, before anything is loaded."""
    for other, what in (("users", "for whom"), ("ratings", "what users had")):
        if given.history and getattr(given, other):
            raise ValueError(f"--{other} and --history contradict each other: each says {what}; leave one out")
    if given.columns and not given.ratings:
        raise ValueError("--columns: needs --ratings FILE, whose columns it names")
    if given.out:
        format_of(given.out)
        files.check(given.out, given.overwrite)


def _print(parts: Iterable[Ranked]) -> None:
    for at, part in enumerate(parts):
        print("\n" * (at > 0), end="")
        _use.show(part)


def _print_json(parts: Iterable[Ranked]) -> None:
    """Prints a JSON list incrementally."""
    print("[", end="")
    for at, record in enumerate(record for part in parts for record in _use.records(part, "user", "item")):
        print("," * (at > 0), json.dumps(record), sep="\n", end="")
    print("\n]")


class OfFile(list[str]):
    """Names read from a file."""


def _known(name: str, items: Any, known: Sequence[str]) -> Any:
    """Drops names from a file that the model does not know, with a note; unknown typed names raise errors elsewhere."""
    if not isinstance(items, OfFile):
        return items
    there = set(known)
    kept = [item for item in items if item in there]
    if len(kept) < len(items):
        console.note(f"--{name}: {len(items) - len(kept):,} of {len(items):,} items are not known, and left out")
    return kept


def _listed(text: str) -> list[str]:
    """Parses comma-separated names; names with commas are quoted, as in CSV. "@FILE": the lines of a file."""
    if text.startswith("@"):
        try:
            return OfFile(line.strip() for _, line in files.numbered_lines(text[1:]) if line.strip())
        except OSError as error:
            raise argparse.ArgumentTypeError(f"{error.strerror}: {text[1:]!r}, the file that @ names") from None
        except ValueError as error:
            raise argparse.ArgumentTypeError(str(error)) from None
    found = [name.strip() for name in next(csv.reader([text], skipinitialspace=True), [])]
    if not all(found) or not found:
        raise argparse.ArgumentTypeError(f"found {text!r}, expected names with commas between them")
    return found


def format_of(path: str | Path) -> str:
    """Returns the format from a file's suffix; ValueError for another one, and for Parquet without pyarrow."""
    ending = Path(path).suffix.lower().removeprefix(".")
    if ending not in WRITERS:
        raise ValueError(f"{path}: expected a name that ends with .csv or .parquet")
    if ending == "parquet" and importlib.util.find_spec("pyarrow") is None:
        raise ValueError(f"{path}: written with pyarrow, which is missing; pip install pyarrow, or name a .csv")
    return ending


def write(path: str | Path, parts: Iterable[Ranked], columns: Sequence[str]) -> int:
    """Writes the rows of all parts (see `Ranked.rows`) under four column names; returns the number of rows.

    Parts are consumed one by one. The write is atomic; raises as `format_of`, OSError for a file that cannot be written, and
    the errors of the parts.
    """
    rows = 0

    def counted() -> Iterator[Ranked]:
        nonlocal rows
        for part in parts:
            rows += int((part.ids >= 0).sum())
            yield part

    files.write(path, WRITERS[format_of(path)](counted(), columns))
    return rows


def _csv(parts: Iterable[Ranked], columns: Sequence[str]) -> Iterator[bytes]:
    def lines(rows: Iterable[Sequence[object]]) -> bytes:
        buffer = io.StringIO()
        csv.writer(buffer, lineterminator="\n").writerows(rows)
        return buffer.getvalue().encode()

    yield lines([columns])
    for part in parts:
        yield lines((asked, rank, name, f"{score:.9g}") for asked, rank, name, score in part.rows())


def _parquet(parts: Iterable[Ranked], columns: Sequence[str]) -> Iterator[bytes]:
    """Yields a compressed file, created in memory, with one row group per part."""
    import pyarrow
    from pyarrow import parquet

    types = (pyarrow.string(), pyarrow.int32(), pyarrow.string(), pyarrow.float32())
    schema = pyarrow.schema(list(zip(columns, types, strict=True)))
    file = pyarrow.BufferOutputStream()
    known: Any = None
    names: Any = None
    with parquet.ParquetWriter(file, schema) as writer:
        for part in parts:
            if part.known is not known:  # once, if all parts share it
                known, names = part.known, pyarrow.array(part.known, types[2])
            row, place = np.nonzero(part.ids >= 0)
            asked = pyarrow.array(part.asked, types[0]).take(pyarrow.array(row))
            ranks = pyarrow.array((place + 1).astype(np.int32))
            best = names.take(pyarrow.array(part.ids[row, place]))
            scores = pyarrow.array(part.scores[row, place])
            writer.write_table(pyarrow.table([asked, ranks, best, scores], schema=schema))
    yield file.getvalue().to_pybytes()


WRITERS = {"csv": _csv, "parquet": _parquet}
