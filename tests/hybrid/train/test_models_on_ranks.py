"""Models that ranks train together: the numbers, figures and checkpoints of one rank. (hybrid/models/pvm.py, _engine.py)"""

import sys

import pytest

from hybrid.cli import main
from hybrid.train import store
from tests.hybrid.pvm import tiny
from tests.support.ranks import ended, started
from tests.support.small_runs import command, figures, on_ranks

if not sys.platform.startswith("linux"):
    pytest.skip("looks through /proc", allow_module_level=True)


def watching(folder, out, steps="12"):
    streams = ["--streams", "2", "--valid", "synthetic", "--threads", "1"]
    return tiny.command(folder, out, "--steps", steps, "--every", "4", *streams)


@pytest.fixture(scope="module")
def watched(tmp_path_factory):
    """A run of a Predictive Vision Model on one rank."""
    folder = tmp_path_factory.mktemp("watched")
    assert main(watching(folder, folder / "run")) == 0
    return folder / "run"


def test_a_vision_model_is_that_of_one_rank_and_goes_on_on_others(tmp_path, watched):
    run = tmp_path / "run"
    on_ranks(2, *watching(tmp_path, run, steps="8"))
    assert (run / store.REPORT).exists() and (run / "last.png").exists()
    on_ranks(4, "train", "--resume", str(run), "--steps", "12")
    assert tiny.tensors(run) == tiny.tensors(watched)
    assert figures(run)[-1] == figures(watched)[-1]


@pytest.mark.parametrize("kind", ["factors"])
def test_a_model_with_a_trunk_is_that_of_one_rank_and_goes_on_on_others(tmp_path, data, kind):
    """In more micro-batches than there are ranks."""

    def learning(out):
        return command(kind, data, out, "--epochs", "1", "--threads", "1", "--micro-batches", "5")

    alone, run = tmp_path / "alone", tmp_path / "run"
    assert main(learning(alone)) == 0
    assert main(["train", "--resume", str(alone), "--epochs", "2", "--threads", "1"]) == 0
    on_ranks(2, *learning(run))
    on_ranks(4, "train", "--resume", str(run), "--epochs", "2", "--threads", "1")
    assert tiny.tensors(run) == tiny.tensors(alone)
    assert figures(run) == figures(alone)


def test_fewer_micro_batches_than_ranks_are_refused_by_name(tmp_path, data):
    code, _, err = ended(
        started(*command("language", data, tmp_path / "run", "--threads", "1"), ranks=3, module="hybrid.cli"), 120
    )
    assert code == 2 and err.count("\n") == 1
    assert "micro_batches: found 2 with 3 ranks, expected 3 at least" in err
