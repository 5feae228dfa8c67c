"""What small runs learn from, and how tests of runs go quicker."""

import numpy as np
import pytest

from hybrid.cli import main
from hybrid.pvm.judge import curve, panel
from hybrid.train import plots
from hybrid.train.saving import Saves
from tests.support.small_runs import command


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    """A text of words in pairs, and ratings of users who walk in a circle."""
    folder = tmp_path_factory.mktemp("data")
    rng = np.random.default_rng(0)
    lines = (" ".join(f"noun{i} verb{i}" for i in rng.integers(0, 20, 6)) for _ in range(60))
    (folder / "text.txt").write_text("\n".join(lines))
    rows = (f"{u}\t{(3 * u + t) % 25}\t4\t{1000 + t}" for u in range(30) for t in range(9))
    (folder / "u.data").write_text("\n".join(rows) + "\n")
    return folder


@pytest.fixture
def undrawn(monkeypatch):
    """Pictures, which take longest of a small run, are not drawn."""
    for module, name in ((plots, "curve"), (plots, "timeline"), (curve, "draw"), (panel, "save")):
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
