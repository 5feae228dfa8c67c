"""Models that ranks train together: the numbers, figures and checkpoints of one rank. (hybrid/models/pvm.py)"""

import json
import sys

import pytest

from hybrid.cli import main
from hybrid.train import store
from tests.hybrid.pvm import tiny
from tests.support.ranks import ended, started

if not sys.platform.startswith("linux"):
    pytest.skip("looks through /proc", allow_module_level=True)


CLOCKS = ("seconds", "processor_seconds", "evaluation_seconds")


def on_ranks(ranks, *words):
    code, _, err = ended(started(*words, ranks=ranks, module="hybrid.cli"), limit=240.0)
    assert code == 0, err


def figures(run):
    """The points of the curve, without clocks."""
    points = map(json.loads, (run / store.CURVE).read_text().splitlines())
    return [{name: value for name, value in point.items() if name not in CLOCKS} for point in points]


def watching(folder, out, steps="12"):
    streams = ["--streams", "2", "--valid", "synthetic", "--threads", "1"]
    return tiny.command(folder, out, "--steps", steps, "--every", "4", *streams)


@pytest.fixture(scope="module")
def watched(tmp_path_factory):
    """A run of a Predictive Vision Model on one rank."""
    folder = tmp_path_factory.mktemp("watched")
    assert main(watching(folder, folder / "run")) == 0
    return folder / "run"


@pytest.mark.parametrize("ranks", [2, 4])
def test_a_vision_model_is_that_of_one_rank_and_goes_on_on_others(tmp_path, watched, ranks):
    run = tmp_path / "run"
    on_ranks(ranks, *watching(tmp_path, run, steps="8"))
    assert (run / store.REPORT).exists() and (run / "last.png").exists()
    on_ranks(6 - ranks, "train", "--resume", str(run), "--steps", "12")
    assert tiny.tensors(run) == tiny.tensors(watched)
    assert figures(run)[-1] == figures(watched)[-1]


def test_one_rank_goes_on_where_several_stopped(tmp_path, watched):
    run = tmp_path / "run"
    on_ranks(2, *watching(tmp_path, run, steps="8"))
    assert main(["train", "--resume", str(run), "--steps", "12", "--threads", "1"]) == 0
    assert tiny.tensors(run) == tiny.tensors(watched)
