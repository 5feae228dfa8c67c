"""The curve as JSON lines."""

import json
import os

import pytest

from hybrid.train.loop import JsonLines


def test_a_full_disk_is_told_with_the_name_of_the_file(tmp_path, monkeypatch):
    lines = JsonLines(path := tmp_path / "curve.jsonl", ())
    lines.close()
    lines._file = open("/dev/full", "ab")  # every write to it finds no room
    for act in (lambda: lines.point({"tick": 1}), lines.close):
        with pytest.raises(OSError, match="No space left") as error:
            act()
        assert error.value.filename == str(path)


def test_points_are_on_the_disk_before_the_file_is_closed(tmp_path, monkeypatch):
    lines, synced = JsonLines(path := tmp_path / "curve.jsonl", ()), []
    monkeypatch.setattr(os, "fsync", lambda descriptor: synced.append(os.fstat(descriptor).st_size))
    lines.point({"tick": 1})
    lines.close()
    assert synced == [path.stat().st_size] and lines._file.closed


def test_points_of_ticks_that_were_lost_are_removed(tmp_path):
    path = tmp_path / "curve.jsonl"
    first = JsonLines(path, ())
    for tick in range(5):
        first.point({"tick": tick})
    first.close()
    again = JsonLines(path, [{"tick": 0}, {"tick": 1}])
    again.point({"tick": 2})
    again.close()
    assert [json.loads(line)["tick"] for line in path.read_text().splitlines()] == [0, 1, 2]
