"""Runs of `hybrid train language --shard`: those of one rank, to the byte; they go on on any number, and are used on one.

(hybrid/models/_sharded.py)
"""

import json
import shutil
import sys

import pytest

from hybrid.cli import main
from hybrid.engine import Engine
from hybrid.train import store
from tests.support.small_runs import command, figures, on_ranks, tensors

if not sys.platform.startswith("linux"):
    pytest.skip("looks through /proc", allow_module_level=True)


def reading(data, out, *more, epochs="1"):
    """A language model, in more micro-batches than there are ranks."""
    return command("language", data, out, "--epochs", epochs, "--threads", "1", "--micro-batches", "5", *more)


def going_on(run, *more):
    return ["train", "--resume", str(run), "--epochs", "2", "--threads", "1", *more]


@pytest.fixture(scope="module")
def alone(tmp_path_factory, data):
    """A run of one rank, in two parts; as the first has left it, it is kept in `first`."""
    folder = tmp_path_factory.mktemp("alone")
    assert main(reading(data, folder / "run")) == 0
    shutil.copytree(folder / "run", folder / "first")
    assert main(going_on(folder / "run")) == 0
    return folder / "run"


@pytest.mark.parametrize("ranks", [2, 4])
def test_it_is_the_model_of_one_rank_and_goes_on_on_others(tmp_path, data, alone, ranks):
    run = tmp_path / "run"
    on_ranks(ranks, *reading(data, run, "--shard", "--patience", "9"))
    on_ranks(6 - ranks, *going_on(run))
    assert tensors(run) == tensors(alone)
    assert figures(run) == figures(alone)
    assert json.loads((run / store.REPORT).read_text())["parameters"] == Engine.load(alone)[0].size


def test_it_goes_on_and_is_used_on_one_rank(tmp_path, data, alone, capsys):
    run = tmp_path / "run"
    on_ranks(2, *reading(data, run, "--shard"))
    assert main(going_on(run)) == 0
    assert tensors(run) == tensors(alone)
    capsys.readouterr()
    for word, *words in (["eval"], ["next", "noun3 verb3 noun5 verb5", "--k", "3"]):
        answers = []
        for folder in (run, alone):
            assert main([word, str(folder), *words, "--device", "cpu", "--quiet"]) == 0
            answers.append(capsys.readouterr().out)
        assert answers[0] == answers[1] != ""


def test_a_run_of_one_rank_goes_on_in_shards(tmp_path, alone):
    shutil.copytree(alone.parent / "first", tmp_path / "run")
    on_ranks(2, *going_on(tmp_path / "run", "--shard"))
    assert tensors(tmp_path / "run") == tensors(alone)
    assert figures(tmp_path / "run") == figures(alone)
