"""Start the ranks of a run by the mpiexec of MPI, and say once why they ended."""

import contextlib
import importlib.util
import re
import shutil
import signal
import subprocess
import sys
import threading
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

from . import process
from .rank import WANTED
from .watch import PATIENCE

# What Hydra, MPICH's mpiexec, says of an end that a rank has told already; some of it on stdout.
NOISE = re.compile(
    r"={83}$|=   (BAD TERMINATION|PID \d+ RUNNING|EXIT CODE|CLEANING UP|YOU CAN IGNORE)|YOUR APPLICATION TERMINATED"
    r"|This typically refers to a problem|Please see the FAQ page|Abort\(\d+\) on node|\[(mpiexec|proxy:\d+)@|Ctrl-C caught"
)
ENDED = re.compile(r"rank \d+ on \S+ ended all ranks \(exit code (\d+)\)")
KILLED = re.compile(r"rank \d+ on \S+ was killed \(signal (\d+)\)")
TOLD = re.compile(r"(rank \d+ on \S+: )?(.*)", re.DOTALL)


def mpiexec() -> str | None:
    """The mpiexec of this environment, else that of PATH; None where there is none, or no mpi4py."""
    if importlib.util.find_spec("mpi4py") is None:
        return None
    own = Path(sys.executable).parent / "mpiexec"
    return str(own) if own.exists() else shutil.which("mpiexec")


def launch(arguments: Sequence[str], ranks: int, hosts: str | None = None, patience: float = PATIENCE) -> int:
    """Run `python -m ARGUMENTS` as several ranks; returns the first failure's exit code, 128 + n by signal n.

    hosts     a file of the names of machines, one a line, which start ranks by ssh; None: this one
    patience  seconds that a rank may wait for another, before all are ended

    SIGINT and SIGTERM go to all ranks; SIGHUP is a SIGTERM. Raises ValueError without MPI, OSError without the file.
    """
    program = mpiexec()
    if program is None:
        raise ValueError(f"launch: mpi4py or mpiexec was not found; to start ranks: {WANTED}")
    if hosts:
        open(hosts).close()
    where = ["--hostfile", hosts] if hosts else []
    rank = [sys.executable, "-m", "hybrid.ranks.rank", str(patience), str(ranks), *arguments]
    with subprocess.Popen(
        [program, "-n", str(ranks), *where, *rank],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        errors="replace",
        process_group=0,  # Ctrl-C reaches it through us alone: a second one makes it end the ranks by force
        preexec_fn=process.die_with_parent,
    ) as running:
        assert running.stdout and running.stderr
        printing = threading.Thread(target=_print, args=(running.stdout,))
        printing.start()
        with _passing_signals(running) as passed:
            failed = _say(running.stderr, passed)
            code = running.wait()
            printing.join()
    if passed and code:
        return 128 + passed[0]
    return failed or code


def _print(lines: Iterable[str]) -> None:
    """Print what the ranks print."""
    for line in lines:
        if not NOISE.match(line):
            print(line, end="", flush=True)


def _say(lines: Iterable[str], passed: Sequence[int]) -> int:
    """Say what the ranks say, each thing once, whoever says it; returns the exit code of the first failure, 0 if none is told.

    passed  signals from the user, of which no rank that they end need say anything
    """
    said: set[str] = set()
    failed = 0
    for line in lines:
        if end := ENDED.match(line):
            failed = failed or int(end[1])
            continue
        death = KILLED.match(line)
        if NOISE.match(line) or (death and passed):
            continue
        found = TOLD.match(line)
        told = found[2] if found else line
        if told in said:
            continue
        said.add(told)
        if death:
            failed = failed or 128 + int(death[1])
        print(line, end="", file=sys.stderr, flush=True)
    return failed


@contextlib.contextmanager
def _passing_signals(running: subprocess.Popen[Any]) -> Iterator[list[int]]:
    """While open, signals go to the ranks; yields the list of those that have."""
    passed: list[int] = []

    def hand_on(number: int, frame: Any) -> None:
        passed.append(number)
        running.send_signal(signal.SIGINT if number == signal.SIGINT else signal.SIGTERM)

    main = threading.current_thread() is threading.main_thread()
    before = {number: signal.signal(number, hand_on) for number in process.PASSED} if main else {}
    try:
        yield passed
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
