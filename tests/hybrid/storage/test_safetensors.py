"""The format is that of the safetensors library, and no array is copied on its way."""

import json
import subprocess
import sys

import numpy as np
import pytest
import safetensors.numpy

from hybrid.storage import checkpoint
from tests.support.saved_arrays import arrays, content, same, tensor_file


def test_the_library_of_the_format_reads_the_file(tmp_path):
    path = tensor_file(checkpoint.save(tmp_path, arrays(), {}))
    assert same(safetensors.numpy.load_file(path), arrays())


def test_arrays_lie_aligned(tmp_path):
    raw = tensor_file(checkpoint.save(tmp_path, arrays(), {})).read_bytes()
    length = int.from_bytes(raw[:8], "little")
    assert (8 + length) % 8 == 0
    for name, place in json.loads(raw[8 : 8 + length]).items():
        assert place["data_offsets"][0] % arrays()[name].itemsize == 0


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
