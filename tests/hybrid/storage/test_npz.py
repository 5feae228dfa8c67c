"""Archives of arrays are read whole, and refused before they take much memory."""

import tracemalloc

import numpy as np
import pytest

from hybrid.storage import tables
from tests.support.npz_files import header, packed

ARRAYS = {"a": np.arange(6, dtype=np.float32).reshape(2, 3), "b": np.array(["x", "yz"])}


@pytest.mark.parametrize("save", [np.savez, np.savez_compressed])
def test_what_is_read(tmp_path, save):
    save(tmp_path / "a.npz", **ARRAYS)
    found = tables.read(tmp_path / "a.npz")
    assert found.keys() == ARRAYS.keys()
    for name, array in ARRAYS.items():
        np.testing.assert_array_equal(found[name], array)


BAD = {
    "claims more than is there": (
        lambda path: packed(path, a=header((10**9, 1000)) + b"1234"),
        "does not hold as much",
    ),
    "grows": (lambda path: packed(path, a=header((10**8,)) + bytes(4 * 10**8)), "grow to more than 64 times"),
    "objects": (lambda path: np.savez(path, a=np.array([{}], object)), "object"),
    "no zip": (lambda path: path.write_bytes(b"PK\3\4 and no more"), "not a zip file"),
    "no array": (lambda path: packed(path, a=b"no array"), "magic"),
}


@pytest.mark.parametrize("bad", BAD)
def test_what_is_refused(tmp_path, bad):
    write, said = BAD[bad]
    path = tmp_path / "a.npz"
    write(path)
    for read in (tables.read, tables.refuse_large):
        tracemalloc.start()
        try:
            with pytest.raises(ValueError, match=said) as error:
                read(path)
            assert str(error.value).startswith(f"{path}: no .npz that can be read (")
            assert tracemalloc.get_traced_memory()[1] < 20e6
        finally:
            tracemalloc.stop()
