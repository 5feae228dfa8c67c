"""The smoke of GPU kernels: every kernel is in it, and whatever a case does, the others run and leave their records."""

import json
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from tests.smoke.cases import CASES
from tests.smoke.device import Check
from tests.support.bench_command import ROOT, bare, importing

COMPILED = """
import os
from tests import cudasim
os.environ["HYBRID_NVCC"] = str(cudasim.NVCC)
from gpu.runtime import kernels
print(*(kernels.cubin(source, "sm_90") for source in kernels.HERE.glob("*.cu")), sep="\\n")
"""
FAKES = """
import ctypes, time
from types import SimpleNamespace
import numpy as np
from tests.smoke.device import Check

DEVICE = SimpleNamespace(close=lambda: None, lost=False)

def lost():
    DEVICE.lost = True
    raise OSError("what was on the device is lost,\\nthe last checkpoint is intact")

def right():
    assert not DEVICE.lost
    return [Check("weights", np.ones(3), np.ones(3))]

def wrong():
    return [Check("loss", np.ones(3), np.ones(3)), Check("weights", np.array([1.0, 2.0]), np.array([1.0, 1.0]))]

CASES = {
    "wrong": wrong, "crash": lambda: ctypes.string_at(0), "lost": lost, "then": right, "hang": lambda: time.sleep(60),
    "last": right,
}

def open_gpu():
    print("a library prints what it likes")
    run = lambda case: (case(), ["units.step_whole"])
    return SimpleNamespace(name="Chip", device=DEVICE, run=run, lost=lambda: DEVICE.lost)
"""


def smoke(tmp_path, environ, *arguments, under=()):
    """Exit code, lines and records."""
    command = [*under, sys.executable, "-m", "tests.smoke", "--json", str(tmp_path / "found.jsonl"), *arguments]
    done = subprocess.run(command, cwd=ROOT, env=environ, capture_output=True, text=True)
    records = [json.loads(line) for line in (tmp_path / "found.jsonl").read_text().splitlines()]
    return done.returncode, done.stdout.splitlines(), records


def test_every_kernel_runs_on_the_simulated_driver_with_numpy_and_pycuda_alone(tmp_path):
    code, lines, records = smoke(tmp_path, bare(tmp_path), under=[sys.executable, "-m", "tests.cudasim"])
    assert (code, lines[-1]) == (0, f"{len(CASES)} ok, 0 off, 0 error"), lines
    assert [record["name"] for record in records] == [*CASES]
    launched = {name for record in records for name in record["kernels"]}
    done = subprocess.run([sys.executable, "-c", COMPILED], cwd=ROOT, capture_output=True, text=True, check=True)
    there = {name for path in done.stdout.split() for name in kernels(Path(path))}
    assert len(there) > 50 and there - launched == set()


def kernels(compiled):
    """Those that the simulated driver finds in a file, with its name in front: each has a function that describes it."""
    found = re.findall(rb"describeIXadL_Z(\d+)(\w+)", compiled.read_bytes())
    return {f"{compiled.name.partition('-')[0]}.{name[: int(size)].decode()}" for size, name in found}


def test_whatever_a_case_does_the_others_run_and_each_leaves_its_record(tmp_path):
    (tmp_path / "fakes.py").write_text(FAKES)
    environ = importing(tmp_path) | {"HYBRID_COMMIT": "abc"}
    code, lines, found = smoke(tmp_path, environ, "--cases", "fakes", "--limit", "2")
    assert code == 1
    expected = [
        r"off by 1 \(allowed 0\.000142\)  wrong  \d+ ms, weights",
        "error crash: the process ended, killed by signal 11",
        "error lost: OSError: what was on the device is lost, the last checkpoint is intact",
        r"ok  then +0\.0e\+00  \d+ ms",
        r"error hang: hung: nothing came in 2 s",
        r"ok  last +0\.0e\+00  \d+ ms",
        "2 ok, 1 off, 3 error",
    ]
    for line, pattern in zip(lines, expected, strict=True):
        assert re.fullmatch(pattern, line), line
    assert [record["name"] for record in found] == ["wrong", "crash", "lost", "then", "hang", "last"]
    for record in found:
        assert (record["bench"], record["commit"], record["device"]) == ("gpu_smoke", "abc", "Chip")
        assert record["seconds"] >= 0
    wrong, crash, _, then, hang, _ = found
    assert then["state"] == "ok" and then["kernels"] == ["units.step_whole"]
    assert (wrong["state"], wrong["error"], wrong["message"]) == ("off", 1.0, "weights")
    assert wrong["allowed"] == pytest.approx(1e-4 * 2**0.5, rel=1e-2)
    assert (crash["state"], crash["error"], crash["allowed"]) == ("error", None, None)
    assert 2 <= hang["seconds"] < 20


def test_a_change_is_what_an_error_is_measured_by():
    """Weights that move by little; beside two roundings of them."""
    first = np.full(100, 100.0)
    found = Check("weights", (first + 1.001).astype(np.float32), first + 1, first, 1e-4)
    error, allowed, change = found.distances()
    assert change == pytest.approx(10) and error == pytest.approx(0.01, rel=1e-2)
    assert allowed == pytest.approx(1e-3 + 2**-23 * 1010)
    assert found._replace(tolerance=2e-3).distances()[1] > error > allowed


def test_whole_numbers_are_equal_or_wrong_and_others_finite():
    assert Check("ids", np.array([3, 4]), np.array([3, 5])).distances()[:2] == (1.0, 0.0)
    with pytest.raises(FloatingPointError, match="loss: 1 of 2 numbers are not finite"):
        Check("loss", np.array([1.0, np.nan]), np.ones(2)).distances()
