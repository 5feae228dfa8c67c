"""Compiled kernels: nobody else can put code there, none outlives its sources, processes take turns, damage is mended."""

import fcntl
import os
import re
import shutil
import subprocess
import sys
import threading
from pathlib import Path

import numba
import pytest

from cpu.runtime import cache


@pytest.fixture
def base(tmp_path, monkeypatch):
    """The user's folder of kernels."""
    monkeypatch.setattr(numba.config, "CACHE_DIR", str(tmp_path / "kernels"))
    monkeypatch.setattr(cache.tempfile, "tempdir", str(tmp_path))
    return tmp_path / "kernels"


def test_a_folder_of_this_user_alone_named_by_the_sources(base):
    folder = Path(cache.kernel_cache())
    assert folder.parent == base and re.fullmatch("[0-9a-f]{16}", folder.name)
    assert [path.stat().st_mode & 0o777 for path in (base, folder)] == [0o700, 0o700]
    assert cache.kernel_cache() == str(folder)


def test_the_mode_of_a_folder_that_the_user_names_stays(base):
    base.mkdir()
    base.chmod(0o1777)
    assert Path(cache.kernel_cache()).parent == base and base.stat().st_mode & 0o7777 == 0o1777


def test_where_nothing_can_be_kept_kernels_are_temporary(base):
    base.write_text("a file, not a folder")
    with pytest.warns(RuntimeWarning, match=f"not kept, since .*{base}"):
        assert Path(cache.kernel_cache()).parent == base.parent


def test_a_changed_source_is_another_folder(tmp_path):
    """In a copy of the package, of which one file then changes."""
    copy = tmp_path / "cpu"
    shutil.copytree(Path(cache.__file__).parents[1], copy)
    code = "import cpu, numba; print(numba.config.CACHE_DIR)"
    command, environment = [sys.executable, "-c", code], os.environ | {"NUMBA_CACHE_DIR": str(tmp_path / "kernels")}
    environment["PYTHONPATH"] = str(tmp_path)
    folders = []
    for text in ("", "# changed\n", ""):
        with open(copy / "rows.py", "a") as file:
            file.write(text)
        done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=True)
        folders.append(done.stdout)
    assert folders[0] != folders[1] == folders[2]


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


def test_a_folder_that_was_removed_is_made_again(tmp_path):
    files = cache.InTurn(str(tmp_path / "kernels"), "kernel", "stamp")
    assert files.load("int64") is None
    (tmp_path / "kernels").rmdir()
    files.save("int64", "code")
    assert files.load("int64") == "code"


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
