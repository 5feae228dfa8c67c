"""Saves survive crashes, power cuts, full disks and a second writer: the checkpoints before stay as they were."""

import errno
import json
import os
import re
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

from hybrid.storage import checkpoint, files
from tests.support.full_disk import Disk, Fault
from tests.support.saved_arrays import FACTS, arrays, content, same
from tests.support.small_runs import Killed


def test_what_a_checkpoint_names_is_on_the_disk_before_it_is_named(tmp_path, monkeypatch):
    """The order that a power cut asks for: bytes, then their name, then the name's folder, then what names them."""
    done, fsync, replace = [], os.fsync, os.replace
    folder = tmp_path / "run"

    def kind(path: str) -> str:
        found = re.search(r"tensors|previous|checkpoint(?=.json)", Path(path).name)
        return "folder" if Path(path).is_dir() else found[0]

    def synced(descriptor):
        done.append("sync " + kind(os.readlink(f"/proc/self/fd/{descriptor}")))
        fsync(descriptor)

    def renamed(source, target):
        done.append("name " + kind(target))
        replace(source, target)

    monkeypatch.setattr(os, "fsync", synced)
    monkeypatch.setattr(os, "replace", renamed)
    for tick in range(2):
        checkpoint.save(folder, arrays(tick), {})
    tensors = ["sync tensors", "name tensors", "sync folder"]
    latest = ["sync checkpoint", "name checkpoint", "sync folder"]
    second = [*tensors, "sync previous", *latest, "name previous", "sync folder"]
    assert done == ["sync folder", *tensors, *latest, *second]


def test_two_writers_of_one_folder_take_turns(tmp_path):
    """Two processes that save to one folder all the while: every save is whole, and so is the last of each kind."""
    script = f"""
import sys
import numpy as np
from hybrid.storage import checkpoint
for turn in range(40):
    checkpoint.save({str(tmp_path)!r}, {{"a": np.full(5000, turn), "who": np.array(int(sys.argv[1]))}}, {{}})
"""
    both = [subprocess.Popen([sys.executable, "-c", script, str(who)], stderr=subprocess.PIPE) for who in range(2)]
    while any(one.poll() is None for one in both):
        for name in (checkpoint.LATEST, checkpoint.PREVIOUS):
            if (tmp_path / name).exists():
                json.loads((tmp_path / name).read_text())
    assert [one.communicate()[1] for one in both] == [b"", b""]
    for name in (checkpoint.LATEST, checkpoint.PREVIOUS):
        assert set(checkpoint.load(tmp_path / name)[0]) == {"a", "who"}
    assert len(content(tmp_path)) == 4


RENAMES = ["tensors-", "checkpoint.json", "checkpoint.previous.json"]


@pytest.mark.parametrize("rename", range(len(RENAMES)), ids=RENAMES)
@pytest.mark.parametrize("when", ["before", "after"])
def test_a_crash_around_any_rename_leaves_a_whole_checkpoint(tmp_path, monkeypatch, rename, when):
    """The process dies before or after a rename: nothing is tidied, and this is what the next process finds."""
    for tick in range(2):
        checkpoint.save(tmp_path, arrays(tick), {"tick": tick})
    with monkeypatch.context() as patch, pytest.raises(Killed):
        crash_at_rename(patch, RENAMES[rename], when)
        checkpoint.save(tmp_path, arrays(2), {"tick": 2})
    done = rename + (when == "after")  # renames that took place
    for name, tick in ((checkpoint.LATEST, 2 if done > 1 else 1), (checkpoint.PREVIOUS, 1 if done > 2 else 0)):
        loaded, facts = checkpoint.load(tmp_path / name)
        assert facts == {"tick": tick}
        assert same(loaded, arrays(tick))
    checkpoint.save(tmp_path, arrays(3), {"tick": 3})
    assert same(checkpoint.load(tmp_path)[0], arrays(3))
    assert len(content(tmp_path)) == 4


def crash_at_rename(patch, name, when):
    """Die at the rename to a file whose name begins so."""
    rename = os.replace

    def crashing(source, target):
        there = target.name.startswith(name)
        if not there or when == "after":
            rename(source, target)
        if there:
            raise Killed

    patch.setattr(os, "replace", crashing)
    patch.setattr(checkpoint, "tidy", lambda *_: None)
    patch.setattr(files, "_forget", lambda _: None)


def test_an_interrupted_save_leaves_nothing_behind(tmp_path, monkeypatch):
    checkpoint.save(tmp_path, arrays(), FACTS)
    before = content(tmp_path)

    def interrupted(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr(os, "fsync", interrupted)
    with pytest.raises(KeyboardInterrupt):
        checkpoint.save(tmp_path, arrays(1), {})
    assert content(tmp_path) == before


def full(folder, patch, number):
    Disk(str(folder), Fault(number, errno.ENOSPC), lambda *_: None, patch.setattr)


@pytest.mark.parametrize("number", [2, 4, 9])
def test_a_full_disk_is_named_and_harms_nothing(tmp_path, monkeypatch, number):
    for tick in range(2):
        checkpoint.save(tmp_path, arrays(tick), FACTS)
    before = content(tmp_path)
    monkeypatch.setattr(checkpoint.shutil, "disk_usage", lambda path: SimpleNamespace(free=2_500_000))
    full(tmp_path, monkeypatch, number)
    with pytest.raises(OSError, match=rf"{tmp_path}: No space left on device: it needs 0.0 MB, 2.5 MB are free"):
        checkpoint.save(tmp_path, arrays(2), FACTS)
    assert content(tmp_path) == before
