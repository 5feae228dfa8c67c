"""Counts of our GPU kernels on the simulated driver: bytes, sectors, bank conflicts; tests/cudasim/counted.py."""

import argparse
import subprocess
import sys

COUNTS = True  # times nothing, so it may run in parallel with other work


def run(arguments: argparse.Namespace) -> int:
    """Prints the table; --json writes one line per kernel."""
    more = ["--json", arguments.json] if arguments.json else []
    return subprocess.run([sys.executable, "-m", "tests.cudasim.counted", *more]).returncode
