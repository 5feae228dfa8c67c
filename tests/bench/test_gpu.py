"""The benchmark of the GPU runs from end to end on the simulated driver; rivals are right; what fails is said."""

import json
import os
import subprocess
import sys
from argparse import Namespace
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from bench.gpu import gpu, sparse, units
from bench.gpu.tree import GRAPH
from bench.harness.measure import near
from bench.step.units import Problem, Torch, padded
from hybrid.units import unit_layout

ROOT = Path(__file__).parents[2]
KEYS = set("bench work who params unit value samples seconds spread checked threads device commit env".split())
RECORD = {"unit": "parameters/s", "threads": 1, "device": "Chip", "env": {"cpu": "Host"}, "commit": "abc", "params": {}}
RECORD |= {"spread": 0.0, "seconds": 1.0, "work": "units.step", "who": "ours", "value": 4e9}
WORKS = {
    *("overlap.tick", "pvm.frame"),
    *("gpu.copy", "gpu.read-modify-write", "gpu.gemm", "units.step", "units.ragged"),
    *("softmax.step", "rows.gather", "rows.scatter", "tree.step"),
}


# The whole command


@pytest.mark.slow
def test_the_command_from_end_to_end_on_the_simulated_driver(tmp_path):
    simulated, options = [sys.executable, "-m", "tests.cudasim"], "--quick --repeat 1 --threads 2".split()
    command = [*simulated, sys.executable, "-m", "bench", "gpu", *options]
    environment = os.environ | {"OMP_WAIT_POLICY": "passive"}
    done = subprocess.run([*command, "--out", str(tmp_path)], cwd=ROOT, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "ours alone: the device is simulated" in done.stdout
    assert "FAILED" not in done.stdout
    (file,) = tmp_path.iterdir()
    assert file.name.startswith("gpu-") and file.name.endswith("-quick.jsonl")
    records = [json.loads(line) for line in file.read_text().splitlines()]
    assert {one["work"] for one in records} == WORKS
    who = {one["who"] for one in records}
    assert who >= {"ours", GRAPH, "in turn", "ours, tick alone"}
    for one in records:
        assert one.keys() >= KEYS
        assert one["checked"] and len(one["samples"]) == 1 and one["value"] > 0
        assert one["env"]["simulated"] and one["env"]["multiprocessors"] > 0
        assert one["threads"] == 2 if one["device"] == "cpu" else one["device"] == one["env"]["gpu"]
    for one in records:
        if one["who"] == "ours" and one["bench"] == "units":
            assert "units" in one["variant"]
            assert one["bytes_per_parameter"] == (16 if one["params"]["momentum"] else 8)
            assert 0 < one["bandwidth_share"]
            assert one["bars"] == []  # a simulated device is not judged


def test_without_a_device_one_line_says_why(monkeypatch, capsys):
    monkeypatch.setattr("gpu.runtime.available.unavailable", lambda: "there is no NVIDIA driver")
    assert gpu.run(Namespace(only=None, tell=None)) == 2
    assert capsys.readouterr().out.startswith("no GPU to measure: there is no NVIDIA driver; `python -m tests.cudasim")


# What goes wrong


@pytest.fixture
def machine():
    facts, silent = {"gpu": "Chip"}, "it is missing"
    return SimpleNamespace(name="Chip", facts=facts, torch=None, silent=silent, simulated=False, bandwidth=None)


def contest(records):
    return SimpleNamespace(records=lambda repeat: records)


def run(machine, tmp_path, monkeypatch, *makes, **more):
    monkeypatch.setattr(gpu, "_contests", lambda *_: [(f"work {i}", make) for i, make in enumerate(makes)])
    arguments = {"json": None, "out": str(tmp_path), "quick": False, "repeat": 1, "only": None}
    return gpu._run(machine, Namespace(**arguments | more))


def test_a_work_that_fails_does_not_stop_the_others_unless_the_device_is_lost(machine, tmp_path, monkeypatch, capsys):
    from gpu.device import DeviceError

    def wrong():
        raise AssertionError("differs from the oracle")

    assert run(machine, tmp_path, monkeypatch, wrong, lambda: contest([RECORD])) == 1
    said = capsys.readouterr()
    assert "FAILED work 0: differs from the oracle" in said.out
    assert "| units.step | 4 G parameters/s |" in said.out
    (file,) = tmp_path.iterdir()
    assert len(file.read_text().splitlines()) == 1

    def lost():
        raise DeviceError("gone")

    assert run(machine, tmp_path, monkeypatch, lost, lambda: pytest.fail("went on")) == 1
    assert "FAILED work 0: gone" in capsys.readouterr().out


def test_near_is_as_strict_as_the_change_is_small():
    first = np.full(10_000, 0.1)
    expected = first + 5e-4
    near("weights", expected.astype(np.float32), expected, first)
    wrong = expected.copy()
    wrong[7] = first[7]  # one number has not moved
    for found in (wrong, np.where(np.arange(wrong.size) == 7, np.nan, expected)):
        with pytest.raises(AssertionError, match=r"weights: off by .* a wrong result is not timed"):
            near("weights", found, expected, first)


# The rivals, in PyTorch on the CPU


@pytest.mark.parametrize("kind", units.RIVALS)
@pytest.mark.parametrize(("batch", "momentum"), [(1, 0.0), (1, 0.9), (3, 0.0), (3, 0.9)])
def test_a_step_of_padded_units_in_pytorch(kind, batch, momentum):
    pytest.importorskip("torch")
    layout = unit_layout([5, 7, 6], [4, 3, 5], [2, 6, 3])
    problem = Problem(layout, batch, momentum)
    made = Torch(problem, kind)
    with pytest.raises(AssertionError, match="weights: off by"):
        made.check()
    made.step()
    made.check()
    made.step()
    unused = padded(layout, np.full(problem.parameters, np.nan, np.float32))
    for part, pads in zip(made.parts, unused, strict=True):  # padding has learnt nothing
        assert np.array_equal(part.detach().numpy()[~np.isnan(pads)], pads[~np.isnan(pads)])


def test_a_step_of_the_softmax_in_pytorch():
    torch = pytest.importorskip("torch")
    made = sparse.TorchSoftmax(torch, sparse.Classification(300, 8, 16), "cpu")
    made.step()
    made.check(1e-4)
    made.step()
    with pytest.raises(AssertionError, match="a wrong result is not timed"):
        made.check(1e-4)
