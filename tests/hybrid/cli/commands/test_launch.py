"""`hybrid launch`, as users type it. (hybrid/cli/ranks.py too)"""

import argparse
import math
import os
import subprocess
import sys

import pytest

from hybrid import console, machine
from hybrid.cli import main, ranks
from hybrid.mpi import world
from hybrid.mpi.world import World
from tests.support.ranks import ended, started


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["-n", "2", "train", "words"], "the model words runs on one rank"),
        (["-n", "2", "data", "list"], "`hybrid data` runs on one rank"),
        (["-n", "100000", "train", "pvm"], "-n: found 100,000 ranks, expected at most "),
        (["-n", "2", "train", "words", "--epoch", "3"], "--epoch: not used by `train words`; did you mean --epochs?"),
    ],
)
def test_mistakes_are_one_line_before_there_are_ranks(capfd, words, said):
    assert main(["launch", *words]) == 2
    printed = capfd.readouterr()
    assert said in printed.err and printed.err.count("\n") == 1 and printed.out == ""


def test_a_rank_starts_no_ranks(monkeypatch, capfd):
    monkeypatch.setenv("PMI_RANK", "0")
    monkeypatch.setattr(world, "world", lambda: World(0, 1, "here"))
    assert main(["launch", "-n", "1", "doctor"]) == 2
    assert "ranks were started already" in capfd.readouterr().err


def test_it_becomes_the_mpiexec_that_runs_the_command(tmp_path, monkeypatch):
    monkeypatch.setenv("HYBRID_DATA", str(tmp_path))
    command = [sys.executable, "-m", "hybrid", "launch", "-n", "1", "data", "list"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stderr) == (0, "") and f"in {tmp_path}" in done.stdout


@pytest.mark.parametrize("words", [["data", "list"], ["train", "pvm", "--steps", "x"]])
def test_a_mistake_of_all_ranks_is_said_once(words):
    """Where a batch system has started them, which mpiexec stands for."""
    code, out, err = ended(started(*words, ranks=2, module="hybrid"))
    assert code == 2 and out == "" and err.count("error: ") == 1


@pytest.mark.parametrize(("said", "threads"), [("", "2"), ("3", "3")])
def test_ranks_that_share_their_cores_divide_them(monkeypatch, said, threads):
    monkeypatch.setattr(machine, "affinity", lambda: list(range(8)))
    monkeypatch.setattr(machine, "quota", lambda: math.inf)
    monkeypatch.setenv("OMP_NUM_THREADS", said)
    if not said:
        monkeypatch.delenv("OMP_NUM_THREADS")
    ranks.begin(argparse.Namespace(command="train", kind="pvm", quiet=False), World(1, 4, "north", 1, 4))
    assert os.environ["OMP_NUM_THREADS"] == threads
    assert console.mute and not console.quiet
