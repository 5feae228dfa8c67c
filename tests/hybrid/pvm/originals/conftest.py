"""Files of strangers are read here: nothing of them may be run."""

import os
import pickle

import pytest

from tests.support.hostile_pickles import never
from tests.support.original_files import save, trained


@pytest.fixture(autouse=True)
def nothing_runs(monkeypatch):
    for name in ("system", "popen"):
        monkeypatch.setattr(os, name, never)


@pytest.fixture
def no_pickle(monkeypatch):
    """Nobody unpickles; not for tests that step, since Numba's cache does."""
    for name in ("load", "loads", "Unpickler", "_Unpickler"):
        monkeypatch.setattr(pickle, name, never)


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    return save(tmp_path_factory.mktemp("whole") / "Sim_small_0badcafe_000000007.zip", trained()[0])
