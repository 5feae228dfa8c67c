"""Folders that this user alone can write, of cpu/ and of gpu/: refused by name where another user could put code there."""

import importlib
import os
from pathlib import Path

import pytest

import cpu.runtime.private
import gpu.runtime.private


@pytest.fixture
def make(tmp_path):
    """Makes the folder kept/code below a folder of this test."""
    return lambda: cpu.runtime.private.private(tmp_path / "kept" / "code", "CACHE")


def test_both_packages_have_the_same_file():
    assert Path(gpu.runtime.private.__file__).read_bytes() == Path(cpu.runtime.private.__file__).read_bytes()


def test_what_is_made_is_the_users_alone_whatever_the_umask(make):
    before = os.umask(0)
    try:
        folder = make()
    finally:
        os.umask(before)
    assert [path.stat().st_mode & 0o777 for path in (folder, folder.parent)] == [0o700, 0o700]
    assert make() == folder


@pytest.mark.parametrize("mode", [0o777, 0o757, 0o1777])
def test_a_folder_that_others_can_write_is_refused(make, mode):
    folder = make()
    folder.chmod(mode)
    said = rf"{folder}: found a folder that other users can write.*remove it.*folder in CACHE"
    with pytest.raises(OSError, match=said):
        make()


def test_so_is_one_below_a_folder_in_which_others_could_exchange_it(make):
    above = make().parent
    above.chmod(0o777)
    with pytest.raises(OSError, match=rf"{above}: found a folder that other users can write.*; chmod go-w {above}, or"):
        make()
    above.chmod(0o1777)  # as /tmp: entries are their owners'
    make()


def test_a_group_is_others_unless_it_is_the_users_own(make, monkeypatch):
    make().chmod(0o770)
    monkeypatch.setattr(cpu.runtime.private, "_own_group", lambda group: True)
    make()
    monkeypatch.setattr(cpu.runtime.private, "_own_group", lambda group: False)
    with pytest.raises(OSError, match="other users can write"):
        make()


def test_the_group_of_a_user_is_known_by_its_name_and_members(monkeypatch):
    grp, pwd = (importlib.import_module(name) for name in ("grp", "pwd"))
    me = pwd.getpwuid(os.geteuid()).pw_name
    members = {1: (me, []), 2: (me, [me]), 3: (me, [me, "other"]), 4: ("users", [])}
    entries = {gid: grp.struct_group((name, "x", gid, who)) for gid, (name, who) in members.items()}
    monkeypatch.setattr(grp, "getgrgid", entries.__getitem__)
    assert [cpu.runtime.private._own_group(group) for group in (1, 2, 3, 4, 5)] == [True, True, False, False, False]


def test_a_folder_of_another_user_is_refused(make, monkeypatch):
    owner = make().stat().st_uid
    if owner:
        monkeypatch.setattr(os, "geteuid", lambda: owner + 1)
    else:  # root's own are everybody's to trust
        os.chown(make(), 12345, -1)
    with pytest.raises(OSError, match=r"found a folder of user \d+, expected yours or root's"):
        make()


def test_a_link_is_followed_once_and_for_all(tmp_path):
    (tmp_path / "there").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "there")
    assert cpu.runtime.private.private(tmp_path / "link" / "code", "CACHE") == (tmp_path / "there" / "code").resolve()


@pytest.mark.parametrize("kept", ["kernels.cache", "install.folder"])
def test_what_the_gpu_keeps_is_kept_in_such_folders(kept, tmp_path, monkeypatch):
    from gpu import install
    from gpu.runtime import kernels

    monkeypatch.setattr(install, "cuda", lambda: (Path("/"), "13.0"))
    ask = kernels.cache if kept == "kernels.cache" else lambda: install.folder("python")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setattr(install, "interface", lambda python: "cpython")
    (tmp_path / "cache").mkdir()
    ask().chmod(0o777)
    with pytest.raises(OSError, match=r"found a folder that other users can write.*XDG_CACHE_HOME"):
        ask()
