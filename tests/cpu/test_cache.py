"""Compiled kernels are kept where nobody else can put code, and never met again after the sources changed."""

import os
import re
import shutil
import subprocess
import sys
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
    before = os.umask(0)
    try:
        folder = Path(cache.kernel_cache())
    finally:
        os.umask(before)
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
    for text in ("", "# changed\n", "# changed\n"):
        with open(copy / "rows.py", "a") as file:
            file.write(text if len(folders) < 2 else "")
        folders.append(
            subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=True).stdout
        )
    assert folders[0] != folders[1] == folders[2]
