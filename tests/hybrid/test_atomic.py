import pytest

from hybrid import atomic


def test_writes_and_replaces(tmp_path):
    path = tmp_path / "file"
    atomic.write(path, [b"old"])
    atomic.write(path, iter([b"a", b"", b"bc"]))
    assert path.read_bytes() == b"abc"
    assert list(tmp_path.iterdir()) == [path]


def test_an_error_half_way_leaves_the_file(tmp_path):
    path = tmp_path / "file"
    atomic.write(path, [b"old"])

    def pieces():
        yield b"new"
        raise OSError("No space left on device")

    with pytest.raises(OSError, match="No space"):
        atomic.write(path, pieces())
    assert path.read_bytes() == b"old"
    assert list(tmp_path.iterdir()) == [path]


def test_a_missing_folder_is_named(tmp_path):
    with pytest.raises(FileNotFoundError, match="nowhere"):
        atomic.write(tmp_path / "nowhere" / "file", [b""])
