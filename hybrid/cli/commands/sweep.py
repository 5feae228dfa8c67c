"""`hybrid sweep`: train a model under many options, and compare."""

import argparse
import json
from collections.abc import Callable
from concurrent.futures import Executor, ThreadPoolExecutor
from pathlib import Path

from ... import console
from ...processors import available
from ...ranks.pool import pool
from ...ranks.world import world
from ...settings import positive
from ..arguments import Parser

WORKERS = "trials at once (default: 1); on several ranks each but the first is a worker"
THREADS = "CPU threads in total, divided among the workers; on ranks, of each (default: all cores that it may use)"


def add(sweep: Parser) -> None:
    """Add the options to the command's parser."""
    sweep.add_argument("file", metavar="FILE.toml", help="what varies and how: see docs/sweep.md")
    sweep.add_argument("--workers", type=positive, metavar="N", help=WORKERS)
    sweep.add_argument("--out", metavar="DIR", help="where trials, table and picture go (default: runs/FILE)")
    sweep.add_argument("--retry", action="store_true", help="try again what failed; else it stays skipped")
    sweep.add_argument("--threads", type=positive, help=THREADS)
    sweep.add_argument("--json", action="store_true", help="print the trials as JSON, best first")


def run(given: argparse.Namespace) -> int:
    """Begin the sweep, or go on with it; rank 0 does, and the others train its trials."""
    ranks = world().size
    if ranks == 1:
        workers = given.workers or 1
        return _sweep(given, workers, ThreadPoolExecutor, sharing=workers)
    if given.workers:
        raise ValueError(f"--workers: on {ranks} ranks there are {ranks - 1}; leave it out")
    with pool() as executor:
        return _sweep(given, ranks - 1, lambda _: executor, sharing=1) if executor else 0


def _sweep(given: argparse.Namespace, workers: int, executor: Callable[[int], Executor], sharing: int) -> int:
    """Sweep by so many workers, of which so many share this process's threads."""

    from ...sweep import file, records, strategies
    from ...sweep import run as sweeping

    path = Path(given.file)
    sweep = file.read(path)
    folder = Path(given.out or f"runs/{path.stem}")
    threads = max((given.threads or available()) // sharing, 1)
    try:
        found = sweeping.run(sweep, folder, workers, threads, given.retry, executor)
    except sweeping.Stopped as stopped:
        console.say(str(stopped))
        return 128 + stopped.signal
    if given.json:
        named = {"figure": found.figure.name}
        rows = [
            named | record._asdict() | {"run": str(folder / sweeping.name_of(record.trial))} for record in found.ordered
        ]
        print(json.dumps(rows, indent=1))
        return 0
    best = found.ordered[0]
    print(found.table)
    print(f"best: trial {best.trial}, {strategies.said(best.options)}: {found.figure.name} {best.value:.5g}")
    print(f"its run: {folder / sweeping.name_of(best.trial)}; the picture: {folder / records.PICTURE}")
    return 0
