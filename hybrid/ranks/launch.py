"""Start the ranks of a run by the mpiexec of MPI, and say once why they ended."""

import contextlib
import os
import re
import signal
import subprocess
import sys
import threading
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, NamedTuple

from .. import console
from . import process
from .mpi import Starter, mpiexec, starter
from .rank import FIRST
from .watch import PATIENCE
from .world import WANTED

ELASTIC = "pip install 'hybrid-engine[elastic]' into an environment without MPICH, whose files have the same names"
ENDED = re.compile(r"rank \d+ on \S+ ended all ranks \(exit code (\d+)\)")
KILLED = re.compile(r"rank \d+ on \S+ was killed \(signal (\d+)\)")
TOLD = re.compile(rf"(rank \d+ on \S+: |{FIRST})?(.*)", re.DOTALL)


def launch(
    arguments: Sequence[str],
    ranks: int,
    hosts: str | None = None,
    patience: float = PATIENCE,
    least: int | None = None,
) -> int:
    """Run `python -m ARGUMENTS` as several ranks; returns the first failure's exit code, 128 + n by signal n.

    hosts     a file of the names of machines, one a line, which start ranks by ssh; None: this one
    patience  seconds that a rank may wait for another, before all are ended
    least     down to how many ranks the others go on when some are killed; None: then all are ended

    SIGINT and SIGTERM go to all ranks; SIGHUP is a SIGTERM. Raises ValueError without MPI, or with `least` and one that
    cannot go on; OSError without the file.
    """
    program = mpiexec()
    if program is None:
        raise ValueError(f"launch: mpi4py or mpiexec was not found; to start ranks: {WANTED}")
    kind = starter(program)
    if least and kind.elastic is None:
        raise ValueError(f"launch: found {kind.name}, which ends all ranks where one is killed; to go on: {ELASTIC}")
    if hosts:
        open(hosts).close()
    told = [*(["--hostfile", hosts] if hosts else []), *(kind.elastic or [] if least else [])]
    rank = [sys.executable, "-m", "hybrid.ranks.rank", str(patience), str(ranks), str(least or 0), *arguments]
    with subprocess.Popen(
        [program, "-n", str(ranks), *told, *rank],
        env={**kind.environment, **os.environ},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        errors="replace",
        process_group=0,  # Ctrl-C reaches it through us alone: a second one makes it end the ranks by force
        preexec_fn=process.die_with_parent,
    ) as running:
        assert running.stdout and running.stderr
        printing = threading.Thread(target=_print, args=(kind.unsaid(running.stdout),))
        printing.start()
        with _passing_signals(running, kind) as passed:
            limit = Limit(ranks, least, lambda: running.send_signal(kind.force)) if least else None
            failed = _say(kind.unsaid(running.stderr), passed, limit)
            code = running.wait()
            printing.join()
    if passed and code:
        return 128 + passed[0]
    return failed or code


def _print(lines: Iterable[str]) -> None:
    """Print what the ranks print."""
    for line in lines:
        print(line, end="", flush=True)


class Limit(NamedTuple):
    """Of ranks that go on when some are killed; the MPI that lets them does not end the others at a failure either.

    ranks  how many there were
    least  how many there have to be
    stop   ends all of them
    """

    ranks: int
    least: int
    stop: Callable[[], None]

    def holds(self, killed: int) -> bool:
        """Whether enough are left; says so, and ends all, where they are too few."""
        if self.ranks - killed < self.least:
            left = f"{self.ranks - killed} of {self.ranks} ranks are left, expected {self.least} or more"
            print(f"{left}: all are ended", file=console.STDERR, flush=True)
            self.stop()
            return False
        return True


def _say(lines: Iterable[str], passed: Sequence[int], limit: Limit | None) -> int:
    """Say what the ranks say, and what several of them say once; returns the exit code of the first failure, 0 if none is told.

    passed  signals from the user, of which no rank that they end need say anything
    limit   None: all end where one is killed
    """
    said: dict[str | None, Counter[str]] = defaultdict(Counter)  # by speaker; None: a rank that gives no name
    printed: Counter[str] = Counter()
    failed = killed = 0
    for line in lines:
        if end := ENDED.match(line):
            failed = failed or int(end[1])
            if limit:
                limit.stop()
            continue
        death = KILLED.match(line)
        if death and passed:
            continue
        found = TOLD.match(line)
        speaker, told = found.groups() if found else (None, line)
        said[speaker][told] += 1
        if said[speaker][told] <= printed[told] or (speaker is None and told in printed):
            continue
        printed[told] += 1
        print(line.removeprefix(FIRST), end="", file=console.STDERR, flush=True)
        if death:
            killed += 1
            if limit is None or not limit.holds(killed):
                failed = failed or 128 + int(death[1])
    return failed


@contextlib.contextmanager
def _passing_signals(running: subprocess.Popen[Any], kind: Starter) -> Iterator[list[int]]:
    """While open, signals go to the ranks; yields the list of those that have. A second Ctrl-C ends them by force."""
    passed: list[int] = []

    def hand_on(number: int, frame: Any) -> None:
        if number != signal.SIGINT:
            running.send_signal(kind.terminate)
        else:
            running.send_signal(kind.force if number in passed else kind.interrupt)
        passed.append(number)

    main = threading.current_thread() is threading.main_thread()
    before = {number: signal.signal(number, hand_on) for number in process.PASSED} if main else {}
    try:
        yield passed
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
