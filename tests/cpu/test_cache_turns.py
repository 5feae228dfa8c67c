"""Two processes never write or read compiled kernels in one folder at once; damaged ones are compiled again."""

import os
import threading

import numba
import pytest

from cpu.runtime import cache

fcntl = pytest.importorskip("fcntl")


@numba.njit(cache=True)
def _twice(number):
    return 2 * number


def test_numba_keeps_kernels_so():
    assert isinstance(_twice._cache._cache_file, cache.InTurn)


def test_a_load_and_a_save_wait_for_the_turn(tmp_path):
    files = cache.InTurn(str(tmp_path), "kernel", "stamp")
    found = []

    def work():
        files.save("int64", "code")
        found.append(files.load("int64"))

    other = os.open(tmp_path, os.O_RDONLY)
    try:
        fcntl.flock(other, fcntl.LOCK_EX)
        thread = threading.Thread(target=work)
        thread.start()
        thread.join(0.2)
        assert thread.is_alive() and not list(tmp_path.iterdir())
    finally:
        os.close(other)
    thread.join()
    assert found == ["code"]


def test_without_locks_kernels_are_kept_all_the_same(tmp_path, monkeypatch):
    monkeypatch.setattr(cache, "fcntl", None)
    files = cache.InTurn(str(tmp_path), "kernel", "stamp")
    files.save("int64", "code")
    assert files.load("int64") == "code" and files.load("float64") is None


WAYS = {
    "empty": lambda data: b"",
    "cut": lambda data: data[: len(data) // 2],
    "without its last byte": lambda data: data[:-1],
    "zeros": lambda data: bytes(len(data)),
    "text": lambda data: b"not a pickle",
}


@pytest.mark.parametrize("end", ["nbi", "nbc"])
@pytest.mark.parametrize("way", WAYS)
def test_what_is_damaged_is_as_none_and_replaced(tmp_path, end, way):
    files = cache.InTurn(str(tmp_path), "kernel", "stamp")
    files.save("int64", "code")
    (path,) = tmp_path.glob(f"*.{end}")
    whole = path.read_bytes()
    path.write_bytes(WAYS[way](whole))
    assert files.load("int64") is None
    files.save("int64", "code")
    assert files.load("int64") == "code" and path.read_bytes() == whole
