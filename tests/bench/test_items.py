"""The board of next items: rows are runs of the command line, beside baselines and published figures."""

import json
import subprocess
import types

import pytest

from bench.quality import items

SMALL = ("--trunk", "mlp", "--width", "4", "--hidden", "4", "--readout-width", "4", "--batch", "64")


@pytest.fixture
def asked(tmp_path, monkeypatch):
    """Arguments of the command line, for ratings of 30 users who walk through 12 items in a circle."""
    path = tmp_path / "walks.txt"
    path.write_text("".join(f"{user} {(user + step) % 12}\n" for user in range(30) for step in range(8)))
    monkeypatch.setitem(items.DATA, "walks", (path.name, ["1", "2"]))
    monkeypatch.setitem(items.PUBLISHED, "walks", {"somebody's": 0.4321})
    monkeypatch.setenv("HYBRID_DATA", str(tmp_path))
    monkeypatch.setattr(items, "LAYERS", {"full softmax": (*SMALL, "--readout", "full")})
    names = ("ratings", "tries", "budget", "seconds", "readouts", "quick")
    given = {"json": str(tmp_path / "records.jsonl"), "threads": 1, "only": ["walks"], "epochs": [1], "seeds": 2}
    return types.SimpleNamespace(**dict.fromkeys(names), **given)


def test_a_row_is_what_the_command_reports_over_seeds_beside_baselines_and_published_figures(
    asked, tmp_path, capsys, monkeypatch
):
    assert items.run(asked) == 0
    printed = capsys.readouterr().out
    lines = [line.split(" | ") for line in printed.splitlines() if line.startswith("| ") and "---" not in line]
    ours, popularity, counts, ease, published = lines[1:]
    ratings = ["--ratings", str(tmp_path / "walks.txt"), "--columns", "1,2", "--threads", "1", "--device", "cpu"]
    figures = []
    for seed in ("0", "1"):
        more = ["--readout", "full", "--epochs", "1", "--seed", seed, "--out", f"{tmp_path}/run{seed}", "--json"]
        done = subprocess.run([*items.COMMAND, *ratings, *SMALL, *more], capture_output=True, text=True, check=True)
        figures.append(json.loads(done.stdout)["test ndcg@10"])
    low, high = min(figures), max(figures)
    assert ours[0] == "| full softmax" and ours[2] == f"{sum(figures) / 2:.4f} ({low:.4f} to {high:.4f})"
    assert (popularity[0], counts[0], ease[0]) == ("| popularity", "| counts", "| EASE")
    assert float(counts[2]) > 0.9 > float(popularity[2])  # in a circle what comes next is certain
    assert published[0] == "| somebody's" and published[2] == "0.4321"
    monkeypatch.setattr(items, "COMMAND", ("false",))  # nothing is trained again
    assert items.run(asked) == 0
    assert capsys.readouterr().out == printed[printed.index("\n###") :]


def test_a_run_that_fails_says_why(asked, tmp_path, monkeypatch):
    monkeypatch.setattr(items, "LAYERS", {"x": ("--readout", "nosuch")})
    with pytest.raises(RuntimeError, match="nosuch"):
        items.run(asked)
