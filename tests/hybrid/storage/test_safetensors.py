"""The format is that of the safetensors library, and no array is copied on its way."""

import subprocess
import sys

import numpy as np
import pytest
import safetensors.numpy as library

from hybrid.storage import checkpoint, safetensors
from tests.support.saved_arrays import arrays, content, same, tensor_file


def test_the_library_of_the_format_reads_the_file(tmp_path):
    path = tensor_file(checkpoint.save(tmp_path, arrays(), {}))
    assert same(library.load_file(path), arrays())


@pytest.mark.parametrize(
    ("array", "message"),
    [
        (np.array([object()]), "found object, expected one of float64"),
        (np.ones(2, ">f4"), "found >f4"),
        (np.ones((4, 4))[:, ::2], "found strides"),
        (np.array(["text"]), "found <U4"),
    ],
)
def test_arrays_that_cannot_be_saved_are_refused(tmp_path, array, message):
    with pytest.raises(ValueError, match=message):
        checkpoint.save(tmp_path, {"bad": array}, {})
    assert content(tmp_path) == {}


def test_runs_of_an_array_are_read_and_nothing_else_is_written(tmp_path):
    saved = {"a": np.arange(10.0), "b": np.arange(12, dtype=np.int32).reshape(3, 4), "c": np.arange(5, dtype=np.int8)}
    checkpoint.save(tmp_path, saved, {})
    a, b = np.full(4, -1.0), np.full(6, -1, np.int32)
    runs = {
        "a": safetensors.Runs(a, np.array([7, 0]), np.array([0, 2]), np.array([2, 1])),
        "b": safetensors.Runs(b, np.array([4]), np.array([1]), np.array([5])),
    }
    checkpoint.verify(tmp_path, safetensors.forms(saved))
    checkpoint.load_runs(tmp_path, runs)
    assert a.tolist() == [7, 8, 0, -1] and b.tolist() == [-1, 4, 5, 6, 7, 8]
    with pytest.raises(ValueError, match="another model: found 'a' F64"):
        checkpoint.verify(tmp_path, safetensors.forms(saved | {"a": a}))
    path = tensor_file(tmp_path / "checkpoint.json")
    path.write_bytes(path.read_bytes()[:-1] + b"x")
    with pytest.raises(ValueError, match="altered since it was saved"):
        checkpoint.verify(tmp_path, safetensors.forms(saved))
    path.write_bytes(path.read_bytes()[:-1])
    with pytest.raises(ValueError, match="truncated"):
        checkpoint.load_runs(tmp_path, runs)


def test_tables_exist_once_in_memory(tmp_path):
    """Peak memory of a process that saves and loads a table of 400 MB, above what it needs to hold that table."""
    script = f"""
import resource
import numpy as np
from hybrid.storage import checkpoint
arrays = {{"table": np.ones((100, 2**20), np.float32), "small": np.ones(1000, np.int64)}}
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
checkpoint.save({str(tmp_path)!r}, arrays, {{}})
arrays["table"][:] = 0
checkpoint.load_into({str(tmp_path)!r}, arrays)
assert arrays["table"].min() == 1
print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before)
"""
    grown = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True).stdout
    assert int(grown) < 50_000  # kilobytes
