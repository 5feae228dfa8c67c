"""Ranks on one machine take a part of its threads each: real ranks on this machine, and files of others."""

import json
import os
import sys

import pytest

from hybrid import machine
from hybrid.mpi import world as ranks
from hybrid.mpi.world import World
from tests.support.ranks import ended, started

linux = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="looks through /proc")


@pytest.fixture
def unsaid(monkeypatch):
    for name in ("OMP_NUM_THREADS", "NUMBA_NUM_THREADS"):
        monkeypatch.delenv(name, raising=False)
    return monkeypatch


def found(ranks):
    """What each rank takes: how many share its cores, OMP_NUM_THREADS, threads."""
    code, out, err = ended(started(ranks=ranks, module="tests.support.rank_cores"), limit=90)  # each imports Numba
    assert code == 0, err
    return json.loads(out)


@linux
def test_a_rank_takes_its_part_of_the_threads(unsaid, ranks=2):
    part = max(1, machine.allowed() // ranks)
    assert found(ranks) == [[ranks, part, part]] * ranks


@linux
def test_ranks_that_their_launcher_gave_cores_of_their_own_do_not_share_them_again(unsaid):
    unsaid.setenv("HYDRA_BINDING", "core")  # MPICH's mpiexec --bind-to core
    every = found(2)
    if every[0][0] > 1:
        pytest.skip("this mpiexec binds no ranks")
    assert every == [[1, 0, 1]] * 2


@linux
def test_what_the_user_says_is_said_to_each_rank(unsaid):
    unsaid.setenv("OMP_NUM_THREADS", "64")
    assert [rank[1:] for rank in found(2)] == [[64, machine.allowed()]] * 2


@pytest.mark.parametrize(
    "cores, quota, sharing, expected", [(64, 1e9, 4, "16"), (64, 6.0, 4, "1"), (8, 1e9, 3, "2"), (2, 1e9, 4, "1")]
)
def test_a_part_of_the_threads_is_of_the_cores_and_of_the_quota(unsaid, cores, quota, sharing, expected):
    unsaid.setattr(machine, "affinity", lambda: list(range(cores)))
    unsaid.setattr(machine, "quota", lambda: quota)
    ranks.take_threads(World(1, sharing, "north", 1, sharing))
    assert os.environ.pop("OMP_NUM_THREADS") == expected
    ranks.take_threads(World(0, 1, "north"))
    assert "OMP_NUM_THREADS" not in os.environ
