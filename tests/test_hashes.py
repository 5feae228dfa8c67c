"""The hashes of short runs: read from a run that is kept, and compared. The runs themselves are not trained here."""

import json

import numpy as np
import pytest
from safetensors.numpy import load_file, save_file

from tests import hashes
from tests.support.trained import copied


@pytest.fixture
def run(tmp_path):
    """A copy of a run, and the file of its arrays."""
    folder = copied("language_tree", tmp_path)
    checkpoint = folder / "checkpoint"
    return folder, checkpoint / json.loads((checkpoint / "checkpoint.json").read_text())["file"]


def test_one_bit_of_one_array_changes_one_hash(run):
    folder, file = run
    before, arrays = hashes.hashes(folder), load_file(file)
    assert set(arrays) == {name for name in before if not name.startswith("curve.")}
    arrays["trunk.weights"][0] = np.nextafter(arrays["trunk.weights"][0], np.float32(9))
    save_file(arrays, file)
    assert hashes.differences({"run": before}, {"run": hashes.hashes(folder)}) == ["run: trunk.weights"]


def test_a_figure_of_the_curve_counts_and_its_clock_does_not(run):
    folder, _ = run
    before, report = hashes.hashes(folder), json.loads((folder / "report.json").read_text())
    report["curve"][0] |= {"seconds": 9.0, "loss": 9.0}
    (folder / "report.json").write_text(json.dumps(report))
    assert hashes.differences({"run": before}, {"run": hashes.hashes(folder)}) == ["run: curve.loss"]


def test_a_run_or_an_array_that_one_side_lacks_differs():
    found = hashes.differences({"a": {"x": "1"}, "b": {"x": "1"}}, {"a": {"x": "1", "y": "2"}})
    assert found == ["a: y", "b: x"]
