"""What small runs learn from, and how tests of runs go quicker."""

import pytest

from hybrid.cli import main
from hybrid.models import pvm
from hybrid.pvm import panel
from hybrid.train import plots
from hybrid.train.loop import Saves
from tests.support.small_runs import command, write_data


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    """What small runs learn from."""
    return write_data(tmp_path_factory.mktemp("data"))


@pytest.fixture
def undrawn(monkeypatch):
    """Pictures, which take longest of a small run, are not drawn."""
    for module, name in ((plots, "curve"), (pvm, "draw_curve"), (panel, "save")):
        monkeypatch.setattr(module, name, lambda *_: None)


@pytest.fixture
def every_tick(monkeypatch):
    """A save is due after every tick."""
    monkeypatch.setattr(Saves, "due", lambda _: True)


@pytest.fixture(scope="module")
def whole_language(tmp_path_factory, data):
    """A finished run of a language model."""
    run = tmp_path_factory.mktemp("whole") / "run"
    assert main(command("language", data, run, "--epochs", "1")) == 0
    return run
