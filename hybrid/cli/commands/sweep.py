"""`hybrid sweep`: train a model under many options, and compare."""

import argparse
import json
import sys
from pathlib import Path

from ...settings import positive
from ..arguments import Parser

THREADS = "CPU threads in total, divided among the workers (default: all cores that it may use)"


def add(sweep: Parser) -> None:
    """Add the options to the command's parser."""
    sweep.add_argument("file", metavar="FILE.toml", help="what varies and how: see docs/sweep.md")
    sweep.add_argument("--workers", type=positive, default=1, metavar="N", help="trials at once (default: 1)")
    sweep.add_argument("--out", metavar="DIR", help="where trials, table and picture go (default: runs/FILE)")
    sweep.add_argument("--retry", action="store_true", help="try again what failed; else it stays skipped")
    sweep.add_argument("--threads", type=positive, help=THREADS)
    sweep.add_argument("--json", action="store_true", help="print the trials as JSON, best first")


def run(given: argparse.Namespace) -> int:
    """Begin the sweep, or go on with it."""
    from cpu.threads import available

    from ...sweep import file, records, strategies
    from ...sweep import run as sweeping

    path = Path(given.file)
    sweep = file.read(path)
    folder = Path(given.out or f"runs/{path.stem}")
    threads = max((given.threads or available()) // given.workers, 1)
    try:
        found = sweeping.run(sweep, folder, given.workers, threads, given.retry)
    except sweeping.Stopped as stopped:
        print(f"hybrid: {stopped}", file=sys.stderr)
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
