"""A file on which HDF5's own library loops is refused in bounded time, and good ones are not."""

import numpy as np
import pytest

from hybrid.formats import hdf5, hdf5_whole


@pytest.fixture
def path(tmp_path):
    rows, near = np.ones((4, 3), np.float32), np.zeros((4, 1), np.int32)
    hdf5.save(tmp_path / "data.hdf5", hdf5.Neighbours(rows, rows, near, np.ones((4, 1), np.float32), "euclidean"))
    return tmp_path / "data.hdf5"


def test_a_good_file_is_not_refused(path):
    hdf5_whole.refuse(path)


def test_a_file_on_which_the_library_loops(path, monkeypatch):
    content = bytearray(path.read_bytes())
    size = content.index(b"GCOL") + 48  # of the free space of the heap that holds the text of an attribute
    content[size : size + 8] = bytes(8)
    path.write_bytes(content)
    monkeypatch.setattr(hdf5_whole, "SECONDS", 2.0)
    with pytest.raises(ValueError, match=r"data\.hdf5: damaged: HDF5's library was not through with it after 2 s"):
        hdf5.load(path)


def test_a_file_that_ends_the_process(path, monkeypatch):
    monkeypatch.setattr(hdf5_whole, "__file__", str(path.with_name("crash.py")))
    path.with_name("crash.py").write_text("import os, signal; os.kill(os.getpid(), signal.SIGSEGV)")
    with pytest.raises(ValueError, match=r"data\.hdf5: damaged: HDF5's library crashes on it \(signal 11\)"):
        hdf5_whole.refuse(path)
