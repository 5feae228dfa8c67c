"""The catalogue beside the files on this machine, where data lie, and data sets from a server on this machine."""

import hashlib
import io
import re
import zipfile
from pathlib import Path

import pytest

from hybrid import data
from hybrid.data import DATASETS, Dataset, Source, data_folder, get, missing
from tests.data import real
from tests.support.file_server import serving

FILES = [source for found in DATASETS.values() for source in found.sources if not source.members]
OTHER_ORDER = "wikitext-2/train.txt"  # the copy beside the checkout has its articles in another order


def test_addresses_name_one_state_of_what_they_point_to():
    for found in DATASETS.values():
        for source in found.sources:
            pinned = r"https://(raw\.githubusercontent\.com/[^/]+/[^/]+/[0-9a-f]{40}/|files\.grouplens\.org/)"
            assert re.match(pinned, source.address)
            assert re.fullmatch(r"sha256:[0-9a-f]{64}|git:[0-9a-f]{40}", source.digest)
    paths = [path for found in DATASETS.values() for path in found.files]
    assert len(set(paths)) == len(paths)


@pytest.mark.parametrize("source", [one for one in FILES if one.path != OTHER_ORDER], ids=lambda one: one.path)
def test_sizes_and_digests_are_those_of_the_files(source):
    path = real(source.path)
    assert path.stat().st_size == source.size and data._matches(path, source.digest)


def test_what_is_named_comes_before_the_environment_and_that_before_the_cache(monkeypatch, tmp_path):
    monkeypatch.setenv("HYBRID_DATA", str(tmp_path / "there"))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    assert data_folder(str(tmp_path / "here")) == tmp_path / "here"
    assert data_folder() == tmp_path / "there"
    monkeypatch.delenv("HYBRID_DATA")
    assert data_folder() == tmp_path / "cache" / "hybrid-engine" / "data"
    assert data_folder("here") == Path.cwd() / "here"


TEXT, NUMBERS = b"a text\n" * 1000, b"1 2 3\n" * 500


def source(address, path, content, *members):
    return Source(address, path, len(content), "sha256:" + hashlib.sha256(content).hexdigest(), members)


@pytest.fixture(scope="module")
def packed():
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("packed/numbers", NUMBERS)
        archive.writestr("packed/other", b"is not wanted")
        archive.writestr("../outside", b"goes nowhere")
    return buffer.getvalue()


@pytest.fixture
def server(monkeypatch, packed):
    with serving({"text.txt": TEXT, "packed.zip": packed}) as found:
        text = source(found.address + "text.txt", "some/text.txt", TEXT)
        archive = source(found.address + "packed.zip", "packed.zip", packed, "packed/numbers")
        monkeypatch.setitem(data.DATASETS, "toy", Dataset("a toy", "none", "play with {0}", (text, archive)))
        yield found


def files(folder):
    return sorted(path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file())


def test_files_and_members_of_archives(server, tmp_path):
    folder = tmp_path / "new"
    assert missing("toy", folder) == ["some/text.txt", "packed/numbers"]
    paths = get("toy", folder)
    assert [path.read_bytes() for path in paths] == [TEXT, NUMBERS]
    assert files(folder) == ["packed.zip", "packed/numbers", "some/text.txt"]
    assert missing("toy", folder) == []


def test_what_is_there_is_not_brought_again(server, tmp_path):
    get("toy", tmp_path)
    server.files.clear()
    (tmp_path / "packed" / "numbers").unlink()
    get("toy", tmp_path)
    assert missing("toy", tmp_path) == []
    (tmp_path / "packed.zip").unlink()
    get("toy", tmp_path)


def test_a_cut_download_leaves_nothing(server, tmp_path):
    server.cut = 100
    with pytest.raises(OSError, match=r"text.txt: cannot be reached, or the connection failed .*check the network"):
        get("toy", tmp_path)
    assert files(tmp_path) == []
    get("toy", tmp_path)
    assert missing("toy", tmp_path) == []


def test_the_name_that_git_gives_a_file(tmp_path):
    content = b"some bytes\n" * 1000
    (tmp_path / "file").write_bytes(content)
    name = "git:" + hashlib.sha1(b"blob 11000\0" + content).hexdigest()
    assert data._matches(tmp_path / "file", name) and not data._matches(tmp_path / "file", "git:" + "0" * 40)


def test_wrong_bytes_leave_nothing(server, tmp_path, packed):
    server.files["packed.zip"] = packed[:-1] + b"\1"
    with pytest.raises(ValueError, match=r"packed.zip: SHA256 hash .* does not match"):
        get("toy", tmp_path)
    assert files(tmp_path) == ["some/text.txt"]


def test_a_file_of_the_users_is_left_as_it_is(server, tmp_path):
    (tmp_path / "some").mkdir()
    (tmp_path / "some" / "text.txt").write_text("mine")
    with pytest.raises(ValueError, match=r"text.txt: not the public file \(expected 7,000 bytes, sha256:.*left as it"):
        get("toy", tmp_path)
    assert (tmp_path / "some" / "text.txt").read_text() == "mine" and server.asked == []
