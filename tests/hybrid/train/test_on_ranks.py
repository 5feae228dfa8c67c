"""A run on several ranks, by a model of the smallest kind: one folder, the same decisions, and an end for whatever goes wrong.

(hybrid/train/loop.py, runs.py and stop.py)
"""

import json
import platform
import re
import signal
import sys

import numpy as np
import pytest

from hybrid.cli import main
from hybrid.storage import checkpoint
from hybrid.train import store
from tests.hybrid.pvm import tiny
from tests.support.plugin import offered_to_children
from tests.support.ranks import ended, started
from tests.support.small_runs import command, figures, on_ranks

if not sys.platform.startswith("linux"):
    pytest.skip("looks through /proc", allow_module_level=True)


@pytest.fixture
def offered(tmp_path, monkeypatch):
    """The model is offered by a distribution, to the ranks too."""
    offered_to_children(monkeypatch, tmp_path / "offered", "parted", "hybrid.models")


def training(run, *more, ranks):
    words = ["train", "parted", "--out", str(run), "--device", "cpu", "--threads", "1", *more]
    return started(*words, ranks=ranks, module="hybrid")


def going_on(run, *more, ranks):
    return started("train", "--resume", str(run), *more, ranks=ranks, module="hybrid")


def finished(running):
    """What a run says that nothing goes wrong with; beside other work its ranks take long to begin."""
    code, out, err = ended(running, limit=120.0)
    assert code == 0, err
    return out, err


def numbers(run):
    return checkpoint.load(run)[0]["numbers"].tolist()


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    """What one rank comes to."""
    found = np.arange(10.0)
    for tick in range(24):
        found += 0.1 * (np.cos(tick) - found * found.sum() / 10)
    return found.tolist()


def test_ranks_write_one_run_and_its_numbers_are_those_of_one(tmp_path, offered, whole):
    run = tmp_path / "run"
    out, err = finished(training(run, "--tensorboard", ranks=2))
    assert numbers(run) == whole
    assert out.count("parted") == 1 and "rank" not in err
    options, report = (json.loads((run / name).read_text()) for name in (store.RUN, store.REPORT))
    assert "ranks" not in str(options) and options["threads"] == 1
    points = [json.loads(line) for line in (run / store.CURVE).read_text().splitlines()]
    assert points == report["curve"] and [point["tick"] for point in points] == [8, 16, 24]
    assert (run / "seeds.txt").exists() and (run / "curve.csv").read_text() == "3 points\n"
    assert len(list((run / store.TENSORBOARD).iterdir())) == 1
    assert not list(run.glob("**/*.part"))


def test_a_run_goes_on_on_another_number_of_ranks(tmp_path, offered, whole):
    run = tmp_path / "run"
    finished(training(run, "--epochs", "1", ranks=2))
    kept = (run / store.RUN).read_text()
    finished(going_on(run, "--epochs", "2", ranks=4))
    finished(going_on(run, "--epochs", "3", ranks=1))
    assert numbers(run) == whole
    assert json.loads((run / store.RUN).read_text()) == json.loads(kept) | {"epochs": 3}
    out, err = finished(going_on(run, ranks=2))
    assert err.count("is finished") == 1 and out.count("parted") == 1


def test_a_signal_stops_all_ranks_after_the_same_tick(tmp_path, offered, whole):
    run, number = tmp_path / "run", signal.SIGTERM
    running = training(run, "--pause", "100", "--ill", "ready 1 3", "--save-every", "0", ranks=2)
    while "ready" not in running.stderr.readline():
        assert running.poll() is None
    running.send_signal(number)
    code, _, err = ended(running)
    assert code == 128 + number
    said = re.findall(r"hybrid: stopped at tick (\d+); continue with: hybrid train --resume", err)
    assert len(said) == 1 and 3 <= int(said[0]) < 24 and err.count("hybrid: ") == 1
    assert checkpoint.read_facts(run)["tick"] == int(said[0])
    finished(going_on(run, ranks=1))
    assert numbers(run) == whole


HERE = f"rank 1 on {platform.node()}"
ILLS = {
    "raise 1 11": (1, f"RuntimeError: boom\nhybrid: {HERE} ended all ranks"),
    "feed 1 11": (2, f"hybrid: {HERE}: error: the feed broke; the checkpoint of tick 8 is in"),
    "kill 1 11": (signal.SIGKILL, "Killed (signal 9)"),  # MPICH's mpiexec says of which process and host
    "full 0 13": (2, f"; found by rank 0 on {platform.node()}; the checkpoint of tick 8 is in"),
}


@pytest.mark.parametrize("what", ILLS)
def test_what_goes_wrong_on_one_rank_ends_all_and_the_save_before_goes_on(tmp_path, offered, whole, what):
    run, (expected, said) = tmp_path / "run", ILLS[what]
    code, out, err = ended(training(run, "--ill", what, "--save-every", "0", ranks=2))
    assert code == expected and (out + err).count(said) == 1, err
    assert err.count("No space left on device") == what.startswith("full")
    assert checkpoint.read_facts(run)["tick"] == 8
    finished(going_on(run, ranks=1))
    assert numbers(run) == whole


def test_figures_of_rank_0_decide_when_a_run_ends_early(tmp_path, offered):
    run = tmp_path / "run"
    out, _ = finished(training(run, "--epochs", "30", "--patience", "1", ranks=2))
    assert "no better one in the last 1 measurements" in out
    facts = checkpoint.read_facts(run)
    assert facts["tick"] < 240 and checkpoint.read_facts(run / store.BEST)["tick"] == facts["tick"] - 8


# Models that ranks train together


GOING_ON = {  # factors in more micro-batches than there are ranks
    "factors": (["--epochs", "1", "--micro-batches", "5"], ["--epochs", "2"]),
    "pvm": (["--streams", "2", "--valid", "synthetic"], ["--steps", "12"]),
}


@pytest.mark.parametrize("kind", GOING_ON)
def test_a_model_is_that_of_one_rank_and_goes_on_on_others(tmp_path, data, kind):
    more, further = (["--threads", "1", *words] for words in GOING_ON[kind])
    alone, run = tmp_path / "alone", tmp_path / "run"
    assert main(command(kind, data, alone, *more)) == 0
    assert main(["train", "--resume", str(alone), *further]) == 0
    on_ranks(2, *command(kind, data, run, *more))
    assert (run / store.REPORT).exists()
    on_ranks(4, "train", "--resume", str(run), *further)
    assert tiny.tensors(run) == tiny.tensors(alone)
    assert figures(run) == figures(alone)


def test_fewer_micro_batches_than_ranks_are_refused_by_name(tmp_path, data):
    words = command("language", data, tmp_path / "run", "--threads", "1")
    code, _, err = ended(started(*words, ranks=3, module="hybrid"), 120)
    assert code == 2 and err.count("\n") == 1
    assert "micro_batches: found 2 with 3 ranks, expected 3 at least" in err
