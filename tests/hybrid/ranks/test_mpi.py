"""The mpiexec that belongs to mpi4py is found, and what it says of an end is told from what it says else."""

import subprocess
from pathlib import Path

import pytest

from hybrid.ranks.mpi import MPICH, OPEN_MPI, mpiexec

DASHES = "-" * 74 + "\n"
DAEMON = ["A daemon failed to report back after being spawned. This could\n", "\n", "be due to several factors\n"]
ABORT = ["MPI_ABORT was invoked on rank 1 in communicator MPI_COMM_WORLD\n", "  Errorcode: 3\n", "\n", "exactly when\n"]


def test_the_mpiexec_is_that_of_the_library(mpi):
    program = mpiexec()
    said = subprocess.run([program, "--version"], capture_output=True, text=True, check=True).stdout
    assert ("Open MPI" in said) == (mpi is OPEN_MPI)
    assert Path(program).is_absolute()


def test_without_mpi4py_there_is_none(monkeypatch):
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    assert mpiexec() is None


@pytest.mark.parametrize(
    ("lines", "left"),
    [
        ([DASHES, *ABORT, DASHES, "after\n"], ["after\n"]),
        (["before\n", DASHES, *DAEMON, DASHES, "after\n"], ["before\n", DASHES, *DAEMON, DASHES, "after\n"]),
        ([DASHES, *ABORT, DASHES, "\0", DASHES, *DAEMON, DASHES], [DASHES, *DAEMON, DASHES]),
        ([DASHES, *ABORT[:2], "rank 3 on north: a note\n", *ABORT[2:], DASHES], ["rank 3 on north: a note\n"]),
        (["1 more process has sent help message help-mpi-api.txt / mpi-abort\n", "\n"], ["\n"]),
    ],
    ids=["an end", "a daemon", "both", "a rank meanwhile", "counts"],
)
def test_what_open_mpi_says_of_an_end_is_left_out(lines, left):
    assert list(OPEN_MPI.unsaid(lines)) == left


def test_what_hydra_says_of_an_end_is_left_out():
    noise = [
        "=" * 83 + "\n",
        "=   BAD TERMINATION OF ONE OF YOUR APPLICATION PROCESSES\n",
        "[mpiexec@north] Sending Ctrl-C\n",
    ]
    assert list(MPICH.unsaid([*noise, "rank 1 on north: a note\n"])) == ["rank 1 on north: a note\n"]
