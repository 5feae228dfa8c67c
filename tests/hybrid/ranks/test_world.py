"""Which process is a rank is seen without MPI; tests/hybrid/ranks/test_launch.py has worlds of several."""

import platform
import sys

import pytest

from hybrid.ranks.world import VARIABLES, World, become, found, launched, world


def test_a_process_that_nobody_launched_is_a_world_of_one(monkeypatch):
    for name in VARIABLES:
        monkeypatch.delenv(name, raising=False)
    before = "mpi4py" in sys.modules
    assert not launched()
    assert found() == World(0, 1, platform.node(), 0, False)
    assert ("mpi4py" in sys.modules) == before


@pytest.mark.parametrize("name", VARIABLES)
def test_launchers_are_known_by_what_they_set(monkeypatch, name):
    monkeypatch.setenv(name, "0")
    assert launched()


def test_without_mpi4py_a_process_is_alone_whatever_a_batch_system_sets(monkeypatch):
    monkeypatch.setenv("PMI_RANK", "3")
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    assert found().size == 1


def test_the_name_of_a_rank():
    this = World(2, 4, "north", 0, True)
    assert this.name == "rank 2 on north"
    assert this._replace(rank=1, size=3, began=2).name == "rank 2 on north"  # as in all that was said of it before


def test_a_world_that_has_lost_ranks_is_another_one(monkeypatch):
    monkeypatch.setattr("hybrid.ranks.world._current", None)
    this = world()
    assert world() is this
    assert become(this._replace(began=2)) is world() is not this
