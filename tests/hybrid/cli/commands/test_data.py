"""`hybrid data`, as a user types it."""

import hashlib
import json

import pytest

from hybrid import data
from hybrid.cli import main
from hybrid.data import Dataset, Source
from tests.support.file_server import serving

TEXT = b"some text\n" * 100


@pytest.fixture
def server(monkeypatch):
    with serving({"text.txt": TEXT}) as found:
        digest = "sha256:" + hashlib.sha256(TEXT).hexdigest()
        text = Source(found.address + "text.txt", "toy/text.txt", len(TEXT), digest)
        toy = Dataset("a toy", "for tests", "look at {0}/toy", (text,))
        monkeypatch.setitem(data.DATASETS, "toy", toy)
        yield found


def test_list_says_what_is_here(server, tmp_path, capsys, monkeypatch):
    monkeypatch.setenv("HYBRID_DATA", str(tmp_path))
    assert main(["data", "list"]) == 0
    assert " here " not in capsys.readouterr().out
    assert main(["data", "get", "toy"]) == 0
    capsys.readouterr()
    assert main(["data", "list"]) == 0
    line = next(line for line in capsys.readouterr().out.splitlines() if line.startswith("toy"))
    assert line.split() == ["toy", "0.0", "MB", "here", "a", "toy"]
    assert main(["data", "list", "--json"]) == 0
    facts = json.loads(capsys.readouterr().out)
    assert facts["folder"] == str(tmp_path) and facts["data"]["toy"]["here"] and not facts["data"]["beauty"]["here"]


def test_get_prints_paths_licence_and_what_comes_next(server, tmp_path, capsys):
    folder = tmp_path / "a folder"
    assert main(["data", "get", "toy", "--out", str(folder)]) == 0
    said = capsys.readouterr()
    path = str(folder / "toy" / "text.txt")
    assert said.out.splitlines() == [path, "licence: for tests", f"next: look at '{folder}'/toy"]
    assert f"hybrid: toy: 0.0 MB, to {folder}\n" in said.err
    assert "text.txt: 100 %, 1.00k of 1.00k B" in said.err
    assert main(["data", "get", "toy", "--out", str(folder), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["files"] == [path]
