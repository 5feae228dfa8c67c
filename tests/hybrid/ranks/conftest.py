"""Tests of ranks run on each MPI that there is."""

import pytest

from hybrid.ranks.mpi import MPICH, OPEN_MPI
from tests.support.ranks import choose


@pytest.fixture(params=[MPICH, OPEN_MPI], ids=lambda mpi: mpi.name)
def mpi(request, monkeypatch):
    """The ranks that a test starts are of each MPI."""
    choose(request.param, monkeypatch)
    return request.param
