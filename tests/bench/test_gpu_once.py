"""Each work of ours is run and checked once, under the simulated driver; an unknown one is named."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from bench.gpu import gpu, once

ROOT = Path(__file__).parents[2]


@pytest.mark.slow
def test_every_work_once_on_the_simulated_driver():
    command = [sys.executable, "-m", "tests.cudasim", sys.executable, "-m", "bench.gpu.once", "--quick"]
    environment = os.environ | {"OMP_WAIT_POLICY": "passive"}
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert done.stdout.split() == list(once.WORKS)


def test_its_works_are_those_of_the_bench_and_an_unknown_one_is_named(capsys):
    assert {*once.WORKS} <= gpu.contests(1).keys()
    assert (*gpu.contests(1),) == gpu.WORKS
    with pytest.raises(SystemExit):
        once.main(["units", "nothing"])
    assert "found 'nothing', expected some of units, pvm, tree, softmax" in capsys.readouterr().err
