"""`hybrid recommend`: what users take next, for all, for some, or for new ones."""

import argparse
import csv
import json
from collections.abc import Iterable, Iterator
from typing import Any

from ... import console
from ...settings import names
from ...storage import output, ranked_table
from ...use.ranked import Ranked
from ..arguments import Parser
from . import _use

COLUMNS = ("user", "rank", "item", "score")


def add(command: Parser) -> None:
    """Offer the options."""
    _use.add_run(command)
    _use.add_k(command, "items for each user")
    command.add_argument("--exclude-seen", action="store_true", help="leave out what the user had")
    command.add_argument(
        "--out",
        metavar="FILE",
        help="write a table, .csv or .parquet, with user, rank, item and score (default: print)",
    )
    command.add_overwrite()
    whom = command.add_argument_group("for whom (default: all users of the run's ratings)")
    whom.add_argument("--users", type=_listed, metavar="A,B,C", help="these users")
    whom.add_argument(
        "--history",
        type=_listed,
        action="append",
        metavar="ITEM,ITEM",
        help="a new user who had these, the last one last",
    )
    whom.add_argument(
        "--ratings", metavar="FILE", help="the users of these ratings, of now or moved since the training"
    )
    whom.add_argument(
        "--columns",
        type=names,
        metavar="USER,ITEM[,TIME]",
        help="which columns of --ratings these are (default: as in training)",
    )


def run(given: argparse.Namespace) -> int:
    """Print or write what is recommended."""
    _refuse(given)
    model = _use.opened(given, "recommend", "recommend")
    if given.ratings and (unknown := model.remember(given.ratings, given.columns)):
        console.note(f"{given.ratings}: {unknown:,} ratings of items that the model does not know are left out")
    k = min(given.k, len(model.items))
    if given.history:
        found = model.recommend_to(given.history, k, exclude_seen=given.exclude_seen)
        parts: Iterable[Ranked] = [found._replace(asked=_new(len(given.history)))]
    else:
        parts = model.recommendations(given.users, k, exclude_seen=given.exclude_seen)
    if given.out:
        rows = ranked_table.write(given.out, parts, COLUMNS)
        said = {"rows": rows, "out": given.out}
        print(json.dumps(said, indent=1) if given.json else f"{rows:,} recommendations -> {given.out}")
    else:
        _print_json(parts) if given.json else _print(parts)
    return 0


def _refuse(given: argparse.Namespace) -> None:
    """ValueError for what contradicts each other, or cannot be written, before anything is loaded."""
    for other, what in (("users", "for whom"), ("ratings", "what users had")):
        if given.history and getattr(given, other):
            raise ValueError(f"--{other} and --history contradict each other: each says {what}; leave one out")
    if given.columns and not given.ratings:
        raise ValueError("--columns: used with --ratings FILE; leave it out")
    if given.out:
        ranked_table.format_of(given.out)
        output.check(given.out, given.overwrite)


def _new(many: int) -> list[str]:
    """What new users are called."""
    return ["new user"] if many == 1 else [f"new user {number}" for number in range(1, many + 1)]


def _print(parts: Iterable[Ranked]) -> None:
    first = True
    for part in parts:
        for asked, pairs in zip(part.asked, part.pairs, strict=True):
            print("" if first else "\n", asked, sep="")
            print(_use.table(pairs))
            first = False


def _print_json(parts: Iterable[Ranked]) -> None:
    """A JSON list, printed as it is found."""
    print("[", end="")
    for at, record in enumerate(_records(parts)):
        print("," * (at > 0), json.dumps(record), sep="\n", end="")
    print("\n]")


def _records(parts: Iterable[Ranked]) -> Iterator[dict[str, Any]]:
    for part in parts:
        yield from _use.records(part, "user", "item")


def _listed(text: str) -> list[str]:
    """Names with commas between them; one that holds a comma stands in quotes, as in CSV."""
    found = [name.strip() for name in next(csv.reader([text], skipinitialspace=True), [])]
    if not all(found) or not found:
        raise argparse.ArgumentTypeError(f"found {text!r}, expected names with commas between them")
    return found
