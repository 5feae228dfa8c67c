"""Files that are there whole or not at all, and that touch no other."""

import os
import stat
import threading

import pytest

from hybrid.storage import files


def test_writes_and_replaces(tmp_path):
    path = tmp_path / "file"
    files.write(path, [b"old"])
    files.write(path, iter([b"a", b"", b"bc"]))
    assert path.read_bytes() == b"abc"
    assert list(tmp_path.iterdir()) == [path]


def test_an_error_half_way_leaves_the_file(tmp_path):
    path = tmp_path / "file"
    files.write(path, [b"old"])

    def pieces():
        yield b"new"
        raise OSError("No space left on device")

    with pytest.raises(OSError, match="No space"):
        files.write(path, pieces())
    assert path.read_bytes() == b"old"
    assert list(tmp_path.iterdir()) == [path]


def test_a_folder_of_that_name_is_named_and_nothing_is_left(tmp_path):
    (tmp_path / "file").mkdir()
    with pytest.raises(IsADirectoryError) as error:
        files.write(tmp_path / "file", [b""])
    assert error.value.filename == str(tmp_path / "file")
    assert list(tmp_path.iterdir()) == [tmp_path / "file"]


def test_files_of_the_user_are_not_touched(tmp_path):
    mine, other = tmp_path / "file.part", tmp_path / "other"
    other.write_text("other")
    mine.symlink_to(other)
    (tmp_path / ".file.part").write_text("mine too")
    files.write(tmp_path / "file", [b"new"])
    assert mine.is_symlink() and other.read_text() == "other" and (tmp_path / ".file.part").read_text() == "mine too"


def test_a_link_goes_on_pointing_to_its_file(tmp_path):
    (tmp_path / "large").mkdir()
    target, path = tmp_path / "large" / "target", tmp_path / "file"
    path.symlink_to(target)
    for content in (b"one", b"two"):  # a link to nothing yet, then to a file
        files.write(path, [content])
        assert path.is_symlink() and target.read_bytes() == content


def test_a_pipe_is_written_to(tmp_path):
    path, read = tmp_path / "pipe", []
    os.mkfifo(path)
    reader = threading.Thread(target=lambda: read.append(path.read_bytes()))
    reader.start()
    files.write(path, [b"a", b"b"])
    reader.join()
    assert read == [b"ab"] and stat.S_ISFIFO(path.stat().st_mode)


@pytest.mark.parametrize("mask", [0o022, 0o077])
def test_the_mode_is_what_the_mask_says(tmp_path, mask):
    before = os.umask(mask)
    try:
        files.write(tmp_path / "file", [b""])
    finally:
        os.umask(before)
    assert (tmp_path / "file").stat().st_mode & 0o777 == 0o666 & ~mask


def test_only_parts_of_ours_are_swept(tmp_path):
    left = {".file.part", "file.part", ".other.0123456789abcdef.part", ".file.0123456789abcdeg.part", "file"}
    for name in left:
        (tmp_path / name).write_text("")
    files.part(tmp_path / "file").write_text("half")
    files.sweep(tmp_path, ["file", "report.json"])
    assert {path.name for path in tmp_path.iterdir()} == left


def test_every_folder_that_is_made_is_brought_to_the_disk_by_its_name(tmp_path, monkeypatch):
    settled, settle = [], files.settle
    monkeypatch.setattr(files, "settle", lambda folder: (settled.append(folder), settle(folder)))
    files.make(tmp_path / "runs" / "own" / "first")
    assert settled == [tmp_path, tmp_path / "runs", tmp_path / "runs" / "own"]
    files.make(tmp_path / "runs" / "own" / "first")
    assert len(settled) == 3
