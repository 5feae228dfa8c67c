"""Files that are read within bounds, that are there whole or not at all, and that touch no other; where may be written."""

import os
import stat
import threading

import numpy as np
import pytest

from hybrid.feeds import ratings
from hybrid.feeds.video.clips.video_file import Video
from hybrid.feeds.video.film import Film
from hybrid.feeds.vocabulary import Vocabulary
from hybrid.formats import vectors
from hybrid.storage import checkpoint, files, lock
from hybrid.train import plots, store


@pytest.mark.parametrize(("name", "text"), [("a.json", '{"b": [1]}'), ("a.toml", "b = [1]"), ("a", '{"b": [1]}')])
def test_what_is_read(tmp_path, name, text):
    (tmp_path / name).write_text(text)
    assert files.read(tmp_path / name) == files.read(str(tmp_path / name)) == {"b": [1]}


BAD = {
    "cut short": ("a.json", b'{"b": [1', "not JSON"),
    "not UTF-8": ("a.json", b'{"b": "\xff"}', "not JSON"),
    "too deep": ("a.json", b"[" * 100_000 + b"]" * 100_000, "nested too deeply, expected JSON"),
    "a number too long": ("a.json", b"1" * 5_000, "not JSON"),
    "no TOML": ("a.toml", b"b = ", "not TOML"),
    "TOML too deep": ("a.toml", b"b = " + b"[" * 5_000 + b"]" * 5_000, "nested too deeply, expected TOML"),
}


@pytest.mark.parametrize("bad", BAD)
def test_what_is_refused(tmp_path, bad):
    name, content, said = BAD[bad]
    (tmp_path / name).write_bytes(content)
    with pytest.raises(ValueError, match=said) as error:
        files.read(tmp_path / name)
    assert type(error.value) is ValueError
    assert str(error.value).startswith(str(tmp_path / name))


def test_numbered_lines(tmp_path, monkeypatch):
    path = tmp_path / "file"
    path.write_bytes("\ufeffone\r\n\ntwo ü\nthree".encode())
    assert list(files.numbered_lines(path)) == [(1, "one"), (2, ""), (3, "two ü"), (4, "three")]
    path.write_bytes(b"one\n\xff\n")
    with pytest.raises(ValueError, match=rf"{path}, line 2: not UTF-8 \(invalid start byte\)"):
        list(files.numbered_lines(path))
    monkeypatch.setattr(files, "LONGEST", 8)
    path.write_bytes(b"one\n12345678\n")
    with pytest.raises(ValueError, match="line 2: more than 8 bytes long"):
        list(files.numbered_lines(path))


@pytest.mark.parametrize("read", [files.read, ratings.load, vectors.open_vectors, lambda path: Video(path, (4, 4, 3))])
def test_what_is_no_file_is_refused_before_it_is_waited_for(tmp_path, read):
    os.mkfifo(tmp_path / "a.json")
    (tmp_path / "link.json").symlink_to("a.json")
    for name in ("a.json", "link.json"):
        with pytest.raises(OSError, match=rf"{name}: found no regular file, expected one; put the file itself"):
            read(tmp_path / name)


def test_writes_and_replaces_and_an_error_half_way_leaves_the_file(tmp_path):
    path = tmp_path / "file"
    files.write(path, [b"old"])
    files.write(path, iter([b"a", b"", b"bc"]))
    assert path.read_bytes() == b"abc"
    assert list(tmp_path.iterdir()) == [path]

    def pieces():
        yield b"new"
        raise OSError("No space left on device")

    with pytest.raises(OSError, match="No space"):
        files.write(path, pieces())
    assert path.read_bytes() == b"abc"
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="no system with /dev/full")
def test_a_folder_of_that_name_or_a_full_device_is_named_and_nothing_is_left(tmp_path):
    (tmp_path / "file").mkdir()
    with pytest.raises(IsADirectoryError) as error:
        files.write(tmp_path / "file", [b""])
    assert error.value.filename == str(tmp_path / "file")
    assert list(tmp_path.iterdir()) == [tmp_path / "file"]
    with pytest.raises(ValueError, match=r"^/: is a folder, expected a file to write"):
        files.write("/", [b""])
    with pytest.raises(OSError, match="No space left") as full:
        files.write("/dev/full", [b"some"])
    assert full.value.filename == "/dev/full"


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


def test_pipes_that_the_user_hands_over_are_read_and_written_to(tmp_path):
    end, begin = os.pipe()
    os.write(begin, b"[1]")
    os.close(begin)
    assert files.read(f"/dev/fd/{end}") == [1]
    os.close(end)
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


WRITERS = {
    "run.json": lambda path: vectors.save(path, ["a"], np.ones((1, 2), np.float32)),
    "vocabulary.json": lambda path: Vocabulary(["a", "b"], [2, 1]).save(path),
    "curve.png": lambda path: plots.curve(path, {"a": [{"seconds": 1, "examples": 1, "loss": 1.0}]}, "loss"),
    "tensorboard": lambda path: Film(path, 25),
    "best": lambda path: checkpoint.save(path, {"a": np.ones(2)}, {}),
    "checkpoint/checkpoint.json": lambda path: files.write(path, [b"a"]),
}


@pytest.fixture(params=[store.RUN, lock.LOCK])
def run(request, tmp_path):
    """A folder of a run, or of one that is being begun, by what tells it."""
    folder = tmp_path / "run"
    folder.mkdir()
    (folder / request.param).write_text("{}")
    return folder


@pytest.mark.parametrize("name", WRITERS)
def test_no_function_writes_what_a_run_writes_unless_it_works_there(run, name):
    for _ in range(2):
        before = sorted(run.rglob("*"))
        with pytest.raises(ValueError, match=f"{name}.*name another file"):
            WRITERS[name](run / name)
        assert sorted(run.rglob("*")) == before
    (run / name).parent.mkdir(exist_ok=True)
    with lock.held(run):
        WRITERS[name](run / name)


def test_a_run_is_found_by_any_way_to_it(run, tmp_path, monkeypatch):
    (tmp_path / "link").symlink_to(run)
    (tmp_path / "file").symlink_to(run / store.RUN)
    monkeypatch.chdir(run)
    by_name = ("report.json", "./best/x", "a/../curve.csv", "RUN.JSON")
    for path in (tmp_path / "link" / "run.json", tmp_path / "file", *by_name):
        with pytest.raises(ValueError, match=r"is a name that the run in .* writes to; name another file"):
            files.refuse_run(path)
    with lock.held(tmp_path / "link"):
        files.refuse_run("report.json")
    for path in ("vectors.txt", "watch.mp4", "trial-001/vectors.txt", tmp_path / "report.json"):
        files.refuse_run(path)


def test_a_file_that_is_there_is_replaced_where_the_user_says_so_or_it_is_the_commands_own(run, tmp_path):
    there, own, new = (tmp_path / name for name in ("mine.txt", "own.txt", "new.txt"))
    for path in (there, own):
        path.write_text("text")
    for path, settings in (
        (there, {"overwrite": True}),
        (there, {"overwrite": True, "inputs": [str(there)]}),
        (new, {"overwrite": False}),
        (own, {"overwrite": False, "own": own, "inputs": [None, "synthetic:3", str(there)]}),
        ("/dev/stdout", {"overwrite": False}),
    ):
        assert str(files.check(path, **settings)) == str(path)
    with pytest.raises(ValueError, match=r"mine.txt: already exists; name another file, or give --overwrite"):
        files.check(there, False, own=own)
    (tmp_path / "link.txt").symlink_to(own)
    with pytest.raises(ValueError, match=r"own.txt: is both read and written by this command.*--overwrite"):
        files.check(own, False, own=own, inputs=[str(tmp_path / "link.txt")])
    with pytest.raises(ValueError, match="name that the run"):
        files.check(run / "report.json", True)
