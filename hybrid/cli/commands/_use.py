"""What the commands share that use a trained run: where it computes, and how answers are printed."""

import argparse
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from ... import console
from ...formats.vectors import open_vectors
from ...settings import positive
from ...train.runs import able, open_run, vectors_of
from ...use.answers import Ranked
from ...use.vectors import Vectors
from ..arguments import CHECKPOINT, DEVICE, THREADS, Parser

SHOWN = 10  # answers, where the user does not say how many


def add_run(command: Parser, name: str = "RUN", help: str = "the folder of a trained run") -> None:
    """Offer the run, and which of its checkpoints computes where."""
    command.add_argument("run", metavar=name, help=help)
    command.add_argument("--checkpoint", choices=("last", "best"), help=CHECKPOINT)
    command.add_argument("--device", help=DEVICE)
    command.add_argument("--threads", type=positive, help=THREADS)
    command.add_argument("--json", action="store_true", help="print JSON")


def add_k(command: Parser, what: str) -> None:
    """Offer how many answers there are."""
    command.add_argument("--k", type=positive, metavar="K", help=f"{what} (default: {SHOWN})")


def at_most(k: int | None, there: int, what: str) -> int:
    """How many answers there are; a note where they are fewer than the user wants."""
    if k and k > there:
        console.note(f"--k {k:,}: there are {there:,} {what}")
    return min(k or SHOWN, there)


def opened(given: argparse.Namespace, method: str, does: str) -> Any:
    """The run, for a method of it; ValueError where its model has none, before anything is loaded. See `able`."""
    able(given.run, method, does)
    return open_run(given.run, checkpoint=given.checkpoint, device=given.device, threads=given.threads)


def vectors(given: argparse.Namespace) -> Vectors:
    """Those of a run, or of a file; ValueError for a run whose model has none."""
    if Path(given.run).is_dir():
        return vectors_of(given.run, checkpoint=given.checkpoint, device=given.device or "cpu")
    for option in ("checkpoint", "device"):
        if getattr(given, option):
            raise ValueError(f"--{option}: not used with a file of vectors, {given.run}; leave it out")
    return open_vectors(given.run)


def show(found: Ranked, as_json: bool = False) -> None:
    """Print what was found for each that was asked about."""
    if as_json:
        print(json.dumps(records(found), indent=1))
        return
    for at, (asked, pairs) in enumerate(zip(found.asked, found.pairs, strict=True)):
        print("\n" * (at > 0) + asked)
        print(table(pairs))


def records(found: Ranked, asked: str = "name", name: str = "name") -> list[dict[str, Any]]:
    """As JSON can hold it: a record for each that was asked about; `asked` and `name` say what the names are of."""
    return [
        {asked: one, "found": [{name: best, "score": score} for best, score in pairs]}
        for one, pairs in zip(found.asked, found.pairs, strict=True)
    ]


def table(pairs: Sequence[tuple[str, float]]) -> str:
    """Names and their scores, a line each."""
    width = max((len(name) for name, _ in pairs), default=0)
    return "\n".join(f"  {name:<{width}}  {score:.4f}" for name, score in pairs)
