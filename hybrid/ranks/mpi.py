"""The mpiexec of the MPI that mpi4py loads: what it is told, how it hands signals on, what of its words is not repeated."""

import importlib.util
import re
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

# What Hydra, MPICH's mpiexec, says of an end that a rank has told already; some of it on stdout.
HYDRAS = re.compile(
    r"={83}$|=   (BAD TERMINATION|PID \d+ RUNNING|EXIT CODE|CLEANING UP|YOU CAN IGNORE)|YOUR APPLICATION TERMINATED"
    r"|This typically refers to a problem|Please see the FAQ page|Abort\(\d+\) on node|\[(mpiexec|proxy:\d+)@|Ctrl-C caught"
)
# What Open MPI says of such an end, between two lines of dashes, and how it goes on.
FRAME = re.compile(r"-{60,}$")
OPEN_MPIS = re.compile(
    r"MPI_ABORT was invoked"
    r"|prterun (has exited due to process rank|noticed that process rank|detected that one or more processes exited)"
)
COUNTS = re.compile(r"\d+ more process(es have|  ?has) sent help message|Set MCA parameter \"\w+\" to 0")
RANKS = re.compile(r"rank \d+ on ")


class Starter(NamedTuple):
    """A kind of mpiexec.

    environment  variables that it begins with, where the user has set no others
    elastic      arguments with which it goes on when a rank is killed; None: it cannot
    interrupt    the signal that makes each rank's keeper give it a SIGINT
    terminate    ... a SIGTERM
    force        the signal that makes it end all ranks, once they have been told to stop
    unsaid       leaves out of lines what is not to be repeated
    """

    name: str
    environment: Mapping[str, str]
    elastic: Sequence[str] | None
    interrupt: signal.Signals
    terminate: signal.Signals
    force: signal.Signals
    unsaid: Callable[[Iterable[str]], Iterator[str]]


def mpiexec() -> str | None:
    """The mpiexec beside the library that mpi4py loads, else that of PATH; None where there is none, or no mpi4py."""
    if importlib.util.find_spec("mpi4py") is None:
        return None
    library = _said([sys.executable, "-m", "mpi4py", "--mpi-library"]).strip()
    beside = Path(library).parent.parent / "bin" / "mpiexec"
    return str(beside) if library and beside.exists() else shutil.which("mpiexec")


def starter(program: str) -> Starter:
    """What kind of mpiexec a program is."""
    return OPEN_MPI if "Open MPI" in _said([program, "--version"]) else MPICH


def _said(command: Sequence[str]) -> str:
    return subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True, errors="replace").stdout


def _without_hydras(lines: Iterable[str]) -> Iterator[str]:
    return (line for line in lines if not HYDRAS.match(line))


def _without_frames(lines: Iterable[str]) -> Iterator[str]:
    """Frames whose first line says that they tell of an end are left out; what a rank says meanwhile is not."""
    opening = ""  # a line of dashes, until the next line says what it opens
    said: bool | None = None  # within a frame: whether it is to be said
    for line in (line.replace("\0", "") for line in lines):
        if RANKS.match(line):
            yield line
        elif opening:
            said = OPEN_MPIS.match(line) is None
            if said:
                yield opening
                yield line
            opening = ""
        elif FRAME.match(line) and said is None:
            opening = line
        elif FRAME.match(line):
            if said:
                yield line
            said = None
        elif said is not False and line and not COUNTS.match(line):
            yield line


MPICH = Starter("MPICH", {}, None, signal.SIGINT, signal.SIGTERM, signal.SIGINT, _without_hydras)
OPEN_MPI = Starter(
    "Open MPI",
    {
        "OMPI_ALLOW_RUN_AS_ROOT": "1",  # a container's user; mpiexec runs what this process may run
        "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1",
        "PRTE_MCA_rmaps_default_mapping_policy": ":oversubscribe",  # more ranks than cores, as with MPICH
        "PRTE_MCA_hwloc_default_binding_policy": "none",  # a rank's threads may take all cores; --pin says otherwise
    },
    ("--with-ft", "ulfm"),
    signal.SIGUSR1,  # a SIGINT or SIGTERM would make it kill them, a second later
    signal.SIGUSR2,
    signal.SIGTERM,
    _without_frames,
)
