"""The mpiexec that belongs to mpi4py is found; tests/hybrid/train/test_on_ranks.py has ranks that end."""

import sys
from pathlib import Path

import pytest

from hybrid.mpi import world


def test_ranks_are_started_by_the_mpiexec_of_the_library():
    program, *words = world.command(3, "module", "word")
    assert Path(program).is_absolute() and Path(program).name == "mpiexec"
    python = [sys.executable, "-m", "mpi4py", "-m", "module", "word"]
    assert words == ["-n", "3", *python]


def test_without_mpi4py_there_is_none(monkeypatch):
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    assert world.mpiexec() is None
    with pytest.raises(ValueError, match=r"pip install 'hybrid-engine\[mpi\]'"):
        world.command(2, "module")
