"""Each work of ours is run and checked once, under the simulated driver."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from bench.gpu import once

ROOT = Path(__file__).parents[2]


@pytest.mark.slow
def test_every_work_once_on_the_simulated_driver():
    command = [sys.executable, "-m", "tests.cudasim", sys.executable, "-m", "bench.gpu.once", "--quick"]
    environment = os.environ | {"OMP_WAIT_POLICY": "passive"}
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert done.stdout.split() == list(once.WORKS)
