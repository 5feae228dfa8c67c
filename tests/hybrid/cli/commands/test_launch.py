"""`hybrid launch` and `python -m hybrid.launch`, as users type them. (hybrid/cli/ranks.py too)"""

import argparse
import math
import os
import signal
import subprocess
import sys

import pytest

from hybrid import console, processors
from hybrid.cli import main, ranks
from hybrid.ranks.mpi import mpiexec
from hybrid.ranks.world import World
from hybrid.storage import checkpoint
from hybrid.train import store


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["-n", "2", "train", "words"], "the model words runs on one rank"),
        (["-n", "2", "data", "list"], "`hybrid data` runs on one rank"),
        (["-n", "2", "train", "words", "--epoch", "3"], "--epoch: not used by `train words`; did you mean --epochs?"),
        (["doctor"], "say -n N"),
        (["-n", "1:1", "doctor"], "-n 1:1: `hybrid doctor` does not go on without a rank; take -n 1"),
        (["-n", "1:2", "train", "words"], "the model words runs on one rank"),
        (["-n", "1", "--hosts", "no-such-file", "doctor"], "no-such-file: No such file or directory"),
    ],
)
def test_mistakes_are_one_line_before_there_are_ranks(capfd, words, said):
    assert main(["launch", *words]) == 2
    printed = capfd.readouterr()
    assert said in printed.err and printed.err.count("\n") == 1 and printed.out == ""


@pytest.mark.parametrize(
    ("ranks", "said"),
    [
        ("3:2", "3:2: found more ranks at least than at most, expected MIN:MAX"),
        ("0:2", "found '0', expected a whole number from 1"),
        ("2:", "found '', expected a whole number"),
        (":2", "found '', expected a whole number"),
        ("two", "found 'two', expected a whole number"),
    ],
)
def test_how_many_ranks_is_a_number_or_two(capfd, ranks, said):
    with pytest.raises(SystemExit):
        main(["launch", "-n", ranks, "doctor"])
    assert f"argument -n: {said}" in capfd.readouterr().err


def test_ranks_that_a_batch_system_has_started_cannot_be_lost(monkeypatch, capfd):
    monkeypatch.setenv("PMI_RANK", "0")
    assert main(["launch", "-n", "1:2", "doctor"]) == 2
    assert "a batch system has started the ranks, and ends them; say -n 2" in capfd.readouterr().err


def test_one_rank_does_what_the_command_does(capfd, tmp_path):
    assert main(["launch", "-n", "1", "data", "list", "--data", str(tmp_path)]) == 0
    assert f"in {tmp_path}" in capfd.readouterr().out


@pytest.mark.parametrize(("ranks", "said"), [(1, "hybrid data get NAME brings one"), (2, "runs on one rank")])
def test_in_a_batch_system_it_is_a_rank(ranks, said):
    """mpiexec stands for the batch system. Where ranks end each other, its exit code may be that of one that it killed."""
    command = [mpiexec(), "-n", str(ranks), sys.executable, "-m", "hybrid.launch", "data", "list"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60)
    assert (done.returncode == 0) == (ranks == 1)
    assert said in done.stdout + done.stderr


@pytest.mark.parametrize(
    ("cores", "sharing", "said", "threads"),
    [(8, 4, None, "2"), (2, 4, None, "1"), (8, 1, None, None), (8, 4, "3", "3")],
)
def test_ranks_that_share_their_cores_divide_them(monkeypatch, cores, sharing, said, threads):
    for name in ("mute", "quiet"):
        monkeypatch.setattr(console, name, False)
    monkeypatch.setattr(processors, "affinity", lambda: list(range(cores)))
    monkeypatch.setattr(processors, "quota", lambda: math.inf)
    monkeypatch.setenv("OMP_NUM_THREADS", said or "")
    if not said:
        monkeypatch.delenv("OMP_NUM_THREADS")
    given = argparse.Namespace(command="doctor", quiet=False)
    ranks.begin(given, World(1, sharing, "north", 1, True, sharing, 1))
    assert os.environ.get("OMP_NUM_THREADS") == threads
    assert console.mute and not console.quiet


def test_what_is_left_of_a_run_is_said_where_ranks_were_killed(tmp_path, capfd):
    folder = tmp_path / "run"
    with store.begun(folder):
        store.keep_options(folder, {"kind": "pvm"})
        checkpoint.save(folder / checkpoint.CHECKPOINT, {}, {"facts": {"at": "step 8"}})
    given = argparse.Namespace(command="train", resume=None, out=str(folder), kind="pvm")
    for code in (0, 1, 2, 128 + signal.SIGTERM):
        ranks.say_what_stands(given, code)
    ranks.say_what_stands(argparse.Namespace(command="doctor"), 128 + signal.SIGKILL)
    assert capfd.readouterr().err == ""
    ranks.say_what_stands(given, 128 + signal.SIGKILL)
    said = f"the checkpoint of step 8 stands in {folder}; go on with: hybrid train --resume {folder}"
    assert capfd.readouterr().err == f"hybrid: {said}\n"
    given.out = str(tmp_path / "none")
    ranks.say_what_stands(given, 128 + signal.SIGKILL)  # before the run was there
    assert capfd.readouterr().err == ""
