"""`hybrid launch`: a command on several ranks, which the mpiexec of MPI starts."""

import argparse
import os
from pathlib import Path

from ...machine import affinity, launched
from ...settings import positive
from ...storage import files
from .. import options, ranks
from ..arguments import Parser


def add(command: Parser) -> None:
    """Adds the options to the command's parser."""
    command.add_argument("-n", dest="ranks", type=positive, required=True, metavar="N", help="number of ranks")
    command.add_argument("--hosts", metavar="FILE", help="machines, one per line, reached by ssh; see docs/ranks.md")
    command.add_argument("words", nargs=argparse.REMAINDER, metavar="COMMAND ...", help="a command and its options")


def run(given: argparse.Namespace) -> int:
    """Becomes the mpiexec that starts the ranks: it hands signals on to them, and its exit code is theirs."""
    ranks.check(options.read(given.words), given.ranks)  # errors are reported before there are ranks
    if launched():
        raise ValueError("launch: ranks were started already; batch systems run python -m mpi4py -m hybrid COMMAND")
    hosts = _hosts(given.hosts) if given.hosts else 1
    most = max(16, 4 * len(affinity())) * hosts
    if given.ranks > most:  # they would fill the memory of the machines
        raise ValueError(
            f"-n: found {given.ranks:,} ranks, expected at most {most} on {hosts} x {len(affinity())} cores; "
            "start fewer, or name more machines by --hosts FILE"
        )
    from ...mpi import world

    words = ["--quiet"] * given.quiet + ["--debug"] * given.debug + given.words
    program = world.command(given.ranks, "hybrid", *words, hosts=given.hosts)
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)  # mpiexec reads stdin, for which a job in the background is stopped
    os.execv(program[0], program)


def _hosts(file: str) -> int:
    """Returns the number of hosts that a file names."""
    with files.named(file):
        lines = Path(file).read_text().splitlines()
    names = {name for line in lines if (name := line.partition("#")[0].partition(":")[0].strip())}
    if not names:
        raise ValueError(f"--hosts: {file} names no hosts, expected one per line: NAME, or NAME:RANKS")
    return len(names)
