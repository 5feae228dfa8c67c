"""The ways to split of `hybrid train factors`, and that eval measures what training did."""

import json
from pathlib import Path

import pytest

from hybrid.cli import main
from tests.support.commands import run_json

SMALL = ["--width", "8", "--hidden", "12", "--readout-width", "8", "--batch", "64", "--epochs", "1", "--threads", "2"]
WAYS = {
    "last": "last",
    "ratio": "ratio:0.3:0.2",
    "drawn": "drawn:0.1",
    "time": "time:0.3",
}


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """60 users who each walk through 25 items in a circle, a step a second."""
    monkeypatch.chdir(tmp_path)
    rows = [(u, (3 * u + t) % 25, 1000 + t) for u in range(60) for t in range(12)]
    Path("u.data").write_text("".join(f"{user}\t{item}\t4\t{time}\n" for user, item, time in rows))
    return tmp_path


def train(capsys, way, *more):
    arguments = ["--ratings", "u.data", "--out", "run", "--split-by", WAYS[way], *SMALL]
    return run_json(capsys, "train", "factors", *arguments, *more)


@pytest.mark.parametrize("way", WAYS)
def test_eval_measures_what_the_report_says(folder, capsys, way):
    report = train(capsys, way)
    figures = run_json(capsys, "eval", "run")
    assert figures == {name: report[name] for name in figures}
    assert 0 < figures["test recall@10"] <= 1
    assert way == "drawn" or report["valid users"] == report["test users"] == 60


def test_times_belong_to_the_data_where_they_split(folder, capsys):
    train(capsys, "time")
    lines = Path("u.data").read_text().splitlines()
    moved = [line[:-4] + str(int(line[-4:]) + (line.split()[0] == "0") * 100) for line in lines]
    Path("u.data").write_text("\n".join(moved) + "\n")  # the same histories, other moments
    assert main(["eval", "run"]) == 2
    assert "not the ratings that run was trained on" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--split-by", "ratio:0.6:0.4"], "split: found test 0.6 and valid 0.4"),
        (["--split-by", "drawn:0.2:0"], "u.data: no item validates; expected some: give --split-by larger shares"),
    ],
)
def test_refusals(folder, capsys, options, message):
    assert main(["train", "factors", "--ratings", "u.data", *SMALL, *options]) == 2
    assert message in capsys.readouterr().err


@pytest.mark.parametrize("value", ["ratio:1", "time:x", "last:0.2", "drawn:0.1:0.1:0.1", "first"])
def test_values_that_cannot_be_read(folder, capsys, value):
    with pytest.raises(SystemExit):
        main(["train", "factors", "--ratings", "u.data", "--split-by", value])
    assert f"argument --split-by: found {value!r}, expected" in capsys.readouterr().err


def test_a_run_of_before_that_has_its_shares_apart_is_refused(folder, capsys):
    train(capsys, "ratio")
    path = Path("run/run.json")
    path.write_text(json.dumps(json.loads(path.read_text()) | {"split_by": "ratio", "test_share": 0.3}))
    assert main(["eval", "run"]) == 2
    assert "--test-share: found in the run" in capsys.readouterr().err
