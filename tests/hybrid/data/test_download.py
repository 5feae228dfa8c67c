"""Against a server on this machine: whole files, files cut in the middle, other bytes, no server."""

import hashlib

import numpy as np
import pytest

from hybrid.data.catalogue import File, Source
from hybrid.data.download import download
from tests.support.file_server import serving

CONTENT = np.random.default_rng(0).bytes(300_000)


@pytest.fixture
def server():
    with serving({"a/file.bin": CONTENT}) as found:
        yield found


@pytest.fixture
def source(server):
    file = File("in/file.bin", len(CONTENT), "sha256:" + hashlib.sha256(CONTENT).hexdigest())
    return Source(server.address + "a/file.bin", file)


@pytest.fixture
def part(tmp_path):
    return tmp_path / "file.part"


def test_a_whole_file(server, source, part):
    download(source, part)
    assert part.read_bytes() == CONTENT and server.asked == [None]


def test_a_cut_download_goes_on_from_where_it_was(server, source, part):
    server.cut = 100_000
    with pytest.raises(
        OSError, match=r"file.bin: the connection was cut after 100,000 of 300,000 bytes; the same command"
    ):
        download(source, part)
    assert part.read_bytes() == CONTENT[:100_000]
    download(source, part)
    assert part.read_bytes() == CONTENT and server.asked == [None, "bytes=100000-"]


def test_a_server_without_ranges_sends_all_again(server, source, part):
    part.write_bytes(CONTENT[:1000])
    server.ranges = False
    download(source, part)
    assert part.read_bytes() == CONTENT and server.asked == ["bytes=1000-"]


@pytest.mark.parametrize("more", [0, 5])
def test_a_part_that_is_long_enough(server, source, part, more):
    part.write_bytes(CONTENT + b"x" * more)
    download(source, part)
    assert part.read_bytes() == CONTENT and server.asked == [None] * bool(more)


def test_other_bytes_are_refused_and_not_kept(server, source, part):
    server.files["a/file.bin"] = CONTENT[:-1] + b"?"
    with pytest.raises(
        ValueError, match=r"file.bin: other bytes than expected \(sha256:[0-9a-f]{64}\); nothing was kept"
    ):
        download(source, part)
    assert not part.exists()


def test_a_part_of_another_file_is_refused_once_and_then_begun_again(server, source, part):
    part.write_bytes(b"something else")
    with pytest.raises(ValueError, match="other bytes"):
        download(source, part)
    download(source, part)
    assert part.read_bytes() == CONTENT


@pytest.mark.parametrize("content", [b"<html>log in first</html>", CONTENT + b"more"])
def test_another_size_is_refused_before_anything_is_written(server, source, part, content):
    server.files["a/file.bin"] = content
    with pytest.raises(
        ValueError, match=rf"file.bin: {len(content):,} bytes, expected 300,000; nothing of it was kept"
    ):
        download(source, part)
    assert not part.exists()


@pytest.mark.parametrize("have", [0, 1000])
def test_more_bytes_than_expected_are_not_kept(server, source, part, have):
    part.write_bytes(CONTENT[:have])
    server.files["a/file.bin"], server.sized = CONTENT + b"more", False
    with pytest.raises(ValueError, match=r"file.bin: more than the 300,000 bytes expected; nothing was kept"):
        download(source, part)
    assert not part.exists()


@pytest.mark.parametrize("have", [0, 1000])
def test_a_web_page_is_refused_and_what_came_before_it_stays(server, source, part, have):
    part.write_bytes(CONTENT[:have])
    server.files["a/file.bin"], server.sized, server.ranges = b"<html>log in first</html>", False, False
    server.kind = "text/html; charset=utf-8"
    with pytest.raises(
        ValueError, match=r"file.bin: a web page \(text/html\) came, expected in/file.bin; nothing of it"
    ):
        download(source, part)
    assert part.read_bytes() == CONTENT[:have]


def test_a_file_that_is_gone(server, source, part):
    server.files.clear()
    with pytest.raises(
        OSError, match=r"file.bin: the server says 404 Not Found; expected in/file.bin there; try again"
    ):
        download(source, part)
    assert not part.exists()


def test_no_server(source, part):
    nobody = source._replace(address="http://127.0.0.1:9/file.bin")
    with pytest.raises(
        OSError, match=r"127.0.0.1:9/file.bin: cannot be reached \(.*refused\); in/file.bin comes from there"
    ):
        download(nobody, part)


def test_a_web_page_is_kept_where_one_was_asked_for(server, source, part):
    server.kind = "text/html"
    page = source._replace(file=source.file._replace(path="in/file.html"))
    download(page, part)
    assert part.read_bytes() == CONTENT
