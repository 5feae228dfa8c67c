"""What tests of several packages ask for."""

import pytest

from hybrid.ranks.mpi import OPEN_MPI
from tests.support.ranks import choose


@pytest.fixture
def open_mpi(monkeypatch):
    """The ranks that a test starts are of the MPI that can go on without one of them."""
    choose(OPEN_MPI, monkeypatch)
