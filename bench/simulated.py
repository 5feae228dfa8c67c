"""The simulated driver in place of a device, and what `gpu_calls` and `gpu_counts` do with it: count, and print a table."""

import argparse
from collections.abc import Callable, Iterable
from typing import Any

from bench.measure import append


def simulate(**settings: int) -> None:
    """Let the simulated driver and the simulated cuBLAS stand in, before PyCUDA is imported; settings: of cudasim.start."""
    from tests import cudasim
    from tests.cudasim import cublas

    cudasim.start(**settings)
    cublas.use()


def tabulate(
    arguments: argparse.Namespace, name: str, counted: Iterable[Any], table: Callable[[list[Any]], str], **settings: int
) -> int:
    """Print the table of what is counted, then the problems that the driver saw; with --json a line a namedtuple.

    counted   begins to count when it is iterated, once the driver runs
    settings  of cudasim.start

    Returns the exit code, 1 where there were problems.
    """
    from tests import cudasim

    simulate(**settings)
    found = list(counted)
    print(table(found), *cudasim.problems(), sep="\n")
    append(arguments.json, [{"bench": name, **one._asdict()} for one in found])
    return 1 if cudasim.problems() else 0
