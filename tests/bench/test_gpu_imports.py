"""The works of `bench gpu` need NumPy and PyCUDA alone, on a machine whose Numba or PyTorch is missing or does not start."""

import json
import subprocess
import sys
from argparse import Namespace
from types import SimpleNamespace

import numpy as np
import pytest

from bench.gpu import gpu
from bench.oracles import tree as tree_shape
from cpu.tree import tree
from tests.support.bench_command import ROOT, bare

COUNTS = {
    "ceilings": {"gpu.copy", "gpu.read-modify-write", "gpu.gemm"},
    "units": {"units.step"},
    "softmax": {"softmax.step"},
    "rows": {"rows.gather", "rows.scatter"},
    "tree": {"tree.step"},
    "pvm": {"pvm.frame"},
}


@pytest.mark.slow
def test_works_run_where_numba_torch_and_scipy_are_missing(tmp_path):
    options = "gpu --quick --anyway --repeat 2 --threads 2".split()
    command = [sys.executable, "-m", "tests.cudasim", sys.executable, "-m", "bench", *options]
    given = ["--json", str(tmp_path / "found.jsonl"), *(f"--only={work}" for work in COUNTS)]
    environment = bare(tmp_path) | {"FIRST": "1"}
    done = subprocess.run([*command, *given], cwd=ROOT, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "FAILED" not in done.stdout
    records = [json.loads(line) for line in (tmp_path / "found.jsonl").read_text().splitlines()]
    assert {one["work"] for one in records} == set.union(*COUNTS.values())
    assert all(one["checked"] and one["interval"] for one in records)
    groups = [one["params"]["together"] for one in records if one["work"] == "tree.step" and one["who"] == "ours"]
    assert groups == [80, 1, 64]
    ticks = [one["who"] for one in records if one["work"] == "pvm.frame"]
    assert ticks == ["ours", "ours, tick alone"]


def test_a_work_whose_module_cannot_be_imported_fails_alone(monkeypatch, tmp_path, capsys):
    """The works before and after it are measured."""
    monkeypatch.setitem(sys.modules, "bench.gpu.tree", None)
    monkeypatch.setattr(gpu, "measured", lambda *_: 1e12)
    for name in ("of_one_size", "ragged"):
        monkeypatch.setattr(f"bench.gpu.units.{name}", lambda machine, quick: [lambda: 1 / 0])
    machine = SimpleNamespace(bandwidth=None, name="Chip", facts={}, silent=None, torch=None, simulated=True)
    only = ["units", "tree", "ragged"]
    given = Namespace(only=only, quick=True, threads=1, repeat=1, json=str(tmp_path / "x"), out=None)
    assert gpu._run(machine, given) == 1
    said = capsys.readouterr().out
    failed = [line.split()[1] for line in said.splitlines() if line.startswith("  FAILED")]
    assert failed == ["units:", "tree:", "ragged:"] and "bench.gpu.tree" in said


# The tree by NumPy


@pytest.mark.parametrize("classes", [2, 3, 5, 8, 17, 1000])
@pytest.mark.parametrize("law", ["zipf", "equal", "zero", "few", "mixed", "steep"])
def test_the_tree_is_that_of_the_kernels(classes, law):
    rng = np.random.default_rng(classes)
    counts = {
        "zipf": (1e9 / np.arange(1, classes + 1)).astype(np.int64),
        "equal": np.ones(classes, int),
        "zero": np.zeros(classes, int),
        "few": rng.integers(0, 5, classes),
        "mixed": rng.integers(0, 10**6, classes),
        "steep": 2 ** np.arange(min(classes, 40)),
    }[law]
    found, expected = tree_shape.huffman(counts), tree.huffman(counts)
    np.testing.assert_array_equal(found.leaf_up, expected.leaf_up)
    np.testing.assert_array_equal(found.node_up, expected.node_up)
    assert found.depth == expected.depth
    np.testing.assert_array_equal(found.ranks(), expected.ranks())
    assert found.ranks().dtype == found.leaf_up.dtype == found.node_up.dtype == np.int32
    assert tree_shape.path(found, 1) == tree.path(expected, 1)
