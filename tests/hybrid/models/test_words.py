"""Word vectors that are validated while they learn."""

import json
import math

import numpy as np
import pytest

from hybrid.cli import main
from hybrid.models import words
from hybrid.train.options import choose


@pytest.fixture
def text(tmp_path):
    rng = np.random.default_rng(0)
    said = [" ".join(f"w{word}" for word in rng.zipf(1.5, 12) % 40) for _ in range(200)]
    (tmp_path / "train.txt").write_text("\n".join(said[:150]))
    (tmp_path / "valid.txt").write_text("\n".join(said[150:]))
    return tmp_path


SMALL = ["--width", "8", "--epochs", "3", "--batch", "64", "--min-count", "2", "--threads", "1"]


def test_validation_is_measured_and_the_best_vectors_are_kept(text, capsys):
    run = text / "run"
    line = ["train", "words", "--text", str(text / "train.txt"), "--valid", str(text / "valid.txt"), *SMALL]
    assert main([*line, "--out", str(run)]) == 0
    curve = [json.loads(line) for line in (run / "curve.jsonl").read_text().splitlines()]
    assert len(curve) == 12 and all(math.isfinite(point["valid loss"]) for point in curve)
    assert curve[-1]["valid loss"] < curve[0]["valid loss"]
    best = json.loads((run / "best" / "checkpoint.json").read_text())["facts"]["facts"]
    lowest = min(curve, key=lambda point: point["valid loss"])
    assert best["at"] == f"tick {lowest['tick']}" and best["progress"]["best"]["value"] == lowest["valid loss"]
    assert main(["export", str(run), str(text / "best.txt"), "--checkpoint", "best"]) == 0
    assert "vectors of 8 numbers" in capsys.readouterr().out


@pytest.mark.parametrize(
    "said, update",
    [
        ({}, "online"),
        ({"readout": "sampled", "loss": "softmax"}, "batch"),
        ({"mode": "batch"}, "batch"),
        ({"readout": "full"}, "batch"),
        ({"readout_optimiser": "adagrad"}, "batch"),
        ({"readout": "sampled", "biases": True}, "batch"),
    ],
)
def test_rows_move_online_where_the_readout_can_and_nothing_is_said_of_batches(text, said, update):
    options = choose("words", text=str(text / "train.txt"), min_count=2, width=8, **said)
    assert words.update(options) == update and words.prepare(options).make().update == update
    assert options["micro_batches"] == 1
