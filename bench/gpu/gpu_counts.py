"""What our GPU kernels do, counted by the simulated driver: bytes, sectors, bank conflicts; tests/cudasim/counted.py."""

import argparse
import subprocess
import sys

COUNTS = True  # and times nothing: it runs beside other work


def run(arguments: argparse.Namespace) -> int:
    """Print the table; with --json a line a kernel."""
    more = ["--json", arguments.json] if arguments.json else []
    return subprocess.run([sys.executable, "-m", "tests.cudasim.counted", *more]).returncode
