"""Which process is a rank is seen without MPI; test_cores.py has worlds of several."""

import platform
import sys

import pytest

from hybrid.machine import LAUNCHERS, launched
from hybrid.mpi.world import World, world


@pytest.fixture(autouse=True)
def unknown():
    world.cache_clear()
    yield
    world.cache_clear()


def test_a_process_that_nobody_launched_is_a_world_of_one(monkeypatch):
    for name in LAUNCHERS:
        monkeypatch.delenv(name, raising=False)
    before = "mpi4py" in sys.modules
    assert not launched()
    assert world() == World(0, 1, platform.node())
    assert ("mpi4py" in sys.modules) == before


@pytest.mark.parametrize("name", LAUNCHERS)
def test_launchers_are_known_by_what_they_set(monkeypatch, name):
    monkeypatch.setenv(name, "0")
    assert launched()


def test_without_mpi4py_a_process_is_alone_whatever_a_batch_system_sets(monkeypatch):
    monkeypatch.setenv("PMI_RANK", "3")
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    assert world().size == 1


def test_the_name_of_a_rank():
    assert World(2, 4, "north").name == "rank 2 on north"
