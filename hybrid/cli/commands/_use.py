"""Options and output shared by the commands that use a trained run."""

import argparse
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from ... import console
from ...formats.vectors import open_vectors
from ...settings import positive
from ...train.options import DEVICE, THREADS
from ...train.runs import able, open_run, vectors_of
from ...use.answers import Ranked
from ...use.vectors import Vectors
from ..arguments import CHECKPOINT, Parser

SHOWN = 10  # default number of results


def add_run(command: Parser, name: str = "RUN", help: str = "the folder of a trained run") -> None:
    """Adds options for the run, its checkpoint and the device."""
    command.add_argument("run", metavar=name, help=help)
    command.add_argument("--checkpoint", choices=("last", "best"), help=CHECKPOINT)
    command.add_argument("--device", help=DEVICE)
    command.add_argument("--threads", type=positive, help=THREADS)
    command.add_argument("--json", action="store_true", help="print JSON")


def add_k(command: Parser, what: str) -> None:
    """Adds the option for the number of results."""
    command.add_argument("--k", type=positive, metavar="K", help=f"{what} (default: {SHOWN})")


def at_most(k: int | None, there: int, what: str) -> int:
    """Returns the number of results; prints a note if fewer exist than the user wants."""
    if k and k > there:
        console.note(f"--k {k:,}: there are {there:,} {what}")
    return min(k or SHOWN, there)


def opened(given: argparse.Namespace, method: str, does: str) -> Any:
    """Opens the run for a method; ValueError, before loading, if its model lacks it. See `able`."""
    able(given.run, method, does)
    return open_run(given.run, checkpoint=given.checkpoint, device=given.device, threads=given.threads)


def vectors(given: argparse.Namespace) -> Vectors:
    """Returns the vectors of a run or a file; ValueError for a run whose model has none."""
    if Path(given.run).is_dir():
        return vectors_of(given.run, checkpoint=given.checkpoint, device=given.device or "cpu")
    for option in ("checkpoint", "device"):
        if getattr(given, option):
            raise ValueError(f"--{option}: not used with a file of vectors, {given.run}; leave it out")
    return open_vectors(given.run)


def show(found: Ranked, as_json: bool = False) -> None:
    """Prints the results of each query."""
    if as_json:
        print(json.dumps(records(found), indent=1))
        return
    for at, (asked, pairs) in enumerate(zip(found.asked, found.pairs, strict=True)):
        print("\n" * (at > 0) + asked)
        print(table(pairs))


def records(found: Ranked, asked: str = "name", name: str = "name") -> list[dict[str, Any]]:
    """Returns JSON-able records, one per query; `asked` and `name` are the keys of query and result."""
    return [
        {asked: one, "found": [{name: best, "score": score} for best, score in pairs]}
        for one, pairs in zip(found.asked, found.pairs, strict=True)
    ]


def table(pairs: Sequence[tuple[str, float]]) -> str:
    """Returns names and scores, one per line."""
    width = max((len(name) for name, _ in pairs), default=0)
    return "\n".join(f"  {name:<{width}}  {score:.4f}" for name, score in pairs)
