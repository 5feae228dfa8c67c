"""The example of placements sees the device, and every part of its model learns the same wherever it is."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.gpu.conftest import SIMULATED

ROOT = Path(__file__).parents[2]
CROSSING = {
    "all on the CPU": "nothing",
    "trunk on the GPU": "grad in, hidden out, x in, x_grad out",
    "trunk and rows on the GPU": "grad in, hidden out, ids in",
    "trunk, rows and tree on the GPU": "ids in, losses out, target in",
}


@pytest.mark.skipif(not SIMULATED, reason="started under the simulated driver")
def test_what_crosses_in_each_placement():
    example = [sys.executable, str(ROOT / "examples" / "gpu_placement.py"), "--epochs", "2"]
    command = [sys.executable, "-m", "tests.cudasim", *example]
    environment = os.environ | {"PYTHONPATH": str(ROOT)}
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    lines = [line for line in done.stdout.splitlines() if line.startswith(("all on", "trunk"))]
    assert {line[:32].strip(): line[45:] for line in lines} == CROSSING
    assert len({line[32:43].strip()[:5] for line in lines}) == 1  # the loss, but for rounding
