"""TensorBoard: what is written can be read, a resumed run replaces what it repeats, and what is missing is named."""

import contextlib
import struct
import sys
from collections import defaultdict
from types import SimpleNamespace

import pytest

pytest.importorskip("tensorboardX", reason="tensorboardX is not installed: make test-all")

from hybrid.cli import main
from hybrid.train.loop import TensorBoard
from tests.hybrid.pvm.tiny import command


def events(folder):
    """All events, in the order written: TFRecords are length, its checksum, data, its checksum."""
    from tensorboardX.proto.event_pb2 import Event

    for path in sorted(folder.iterdir()):
        data, at = path.read_bytes(), 0
        while at < len(data):
            (length,) = struct.unpack_from("<Q", data, at)
            yield Event.FromString(data[at + 12 : at + 12 + length])
            at += 16 + length


def values(folder):
    """Of every tag (step, figure)."""
    found = defaultdict(list)
    for event in events(folder):
        for value in event.summary.value:
            found[value.tag].append((event.step, value.simple_value))
    return found


def test_figures_come_back(tmp_path):
    job = SimpleNamespace(unit="tick", figures=lambda point: point["figures"])
    with contextlib.closing(TensorBoard(tmp_path, job)) as board:
        board.point({"tick": 0, "figures": {"error/layer 0": 0.5}})
        board.point({"tick": 7, "figures": {"error/layer 0": 0.25}})
    assert values(tmp_path) == {"error/layer_0": [(0, 0.5), (7, 0.25)]}


def test_a_run_writes_what_there_is_to_see(tmp_path):
    run = tmp_path / "run"
    assert main(command(tmp_path, run, "--steps", "21", "--every", "2", "--tensorboard")) == 0
    found = values(run / "tensorboard")
    assert [step for step, _ in found["error/layer_2"]] == [*range(0, 20, 2), 21]
    assert set(found) >= {"next_frame/prediction", "next_frame/last_frame", "speed/frames_a_second", "rate/layer_0"}
    assert found["rate/layer_0"][0][1] == pytest.approx(0.05)


def test_tensorboardx_missing_is_said_before_anything_is_done(capsys, monkeypatch, tmp_path):
    monkeypatch.setitem(sys.modules, "tensorboardX", None)
    run = tmp_path / "run"
    assert main(command(tmp_path, run, "--tensorboard")) == 2
    assert 'pip install "hybrid-engine[tensorboard]"' in capsys.readouterr().err
    assert not run.exists()
