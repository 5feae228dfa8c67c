"""What a user sees of a GPU that works, and of each that does not: one line with the cause, and nothing after it."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.gpu.conftest import SIMULATED

ROOT = Path(__file__).parents[2]
pytestmark = pytest.mark.skipif(not SIMULATED, reason="causes are made by the simulated driver")


def hybrid(*arguments, **environment):
    """Run the command under the simulated driver; its exit code, output and the lines of its errors.

    Without the progress bar, and without the note that kernels are compiled: whether it comes depends on who ran before.
    """
    command = [sys.executable, "-m", "tests.cudasim", sys.executable, "-m", "hybrid", *arguments]
    done = subprocess.run(command, cwd=ROOT, env=os.environ | environment, capture_output=True, text=True, timeout=120)
    errors = [line for line in done.stderr.replace("\r", "\n").splitlines() if line]
    told = [line for line in errors if "ticks" not in line and "compiling kernels" not in line]
    return done.returncode, done.stdout, told


def test_training_and_asking_on_the_first_device(train, tmp_path):
    code, out, errors = hybrid(*train)
    assert code == 0 and errors == [] and "cuda:0" in out
    code, out, errors = hybrid("eval", str(tmp_path / "run"))
    assert code == 0 and errors == [] and "perplexity" in out


@pytest.mark.parametrize(
    ("environment", "cause"),
    [
        (
            {"CUDASIM_FAIL": "init:100"},
            "the NVIDIA driver does not start (cuInit failed: no CUDA-capable device is detected)",
        ),
        ({"CUDASIM_DEVICES": "0"}, "the NVIDIA driver sees no device"),
        ({"CUDASIM_DRIVER": "12.2"}, "the driver supports CUDA 12, older than nvcc 13.0; update the driver"),
    ],
)
def test_a_gpu_that_cannot_be_used(train, environment, cause):
    code, _, errors = hybrid(*train, "--device", "cuda:0", **environment)
    assert code == 2 and len(errors) == 1, errors
    assert errors[0].startswith(f'hybrid: error: device: "cuda:0" cannot be used: {cause}')
    assert errors[0].endswith('use "cpu"')
    code, out, errors = hybrid(*train, **environment)
    assert code == 0 and errors == [] and "cpu" in out


@pytest.mark.parametrize(
    ("environment", "cause"),
    [
        ({"CUDASIM_MEMORY": "30000"}, "hybrid: error: out of memory: cuda:0: no room for an array "),
        ({"CUDASIM_FAIL": "lost:300"}, "hybrid: error: cuda:0: "),
        ({"CUDASIM_FAIL": "module:1"}, "hybrid: error: cuda:0: cuModuleLoad failed"),
    ],
)
def test_a_gpu_that_fails_on_the_way(train, environment, cause):
    code, _, errors = hybrid(*train, "--device", "cuda:0", **environment)
    assert code == 2 and len(errors) == 1, errors
    assert errors[0].startswith(cause)
