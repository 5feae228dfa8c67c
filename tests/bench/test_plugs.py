"""The rivals of the LSTM language model: all learn the same text alike, and are judged alike.

Here is tested bench/lstm.py.
"""

import json
import math
from types import SimpleNamespace

import numpy as np
import pytest

pytest.importorskip("torch")

from bench import lstm, plugs
from bench.report import read, tables

HEADS = lstm.heads()


@pytest.fixture
def text(tmp_path, monkeypatch):
    """A text in which every word says which one is next."""
    (tmp_path / "wikitext-2").mkdir()
    for name, lines in (("train", 400), ("valid", 40)):
        words = (" ".join(f"w{(i + t) % 30}" for t in range(30)) for i in range(lines))
        (tmp_path / "wikitext-2" / f"{name}.txt").write_text("<unk>\n" + "\n".join(words) + "\n")
    monkeypatch.setenv("HYBRID_DATA", str(tmp_path))
    return lstm.wikitext()


def test_tokens_are_numbered_by_falling_frequency(text):
    assert len(text.counts) == 32 and (np.diff(text.counts) <= 0).all()
    assert text.counts.sum() == len(text.train) == 400 * 31 + 2 and len(text.valid) == 40 * 31 + 2
    drawn = lstm.zipf(1000, 50_000)
    met = np.bincount(drawn.train, minlength=1000)
    assert met[0] / met[9] == pytest.approx(10, rel=0.3) and drawn.valid is None and met.size == 1000


def test_segments_follow_each_other(text):
    cut = list(lstm.segments(text.train, 20))
    columns = len(text.train) // 20
    assert sum(len(ids) for ids, _ in cut) == columns - 1 and cut[0][0].shape == (35, 20)
    assert cut[0][1][-1].equal(cut[1][0][0]) and cut[0][0][1].equal(cut[0][1][0])


@pytest.mark.parametrize("who", HEADS)
def test_every_rival_learns(text, who):
    model = lstm.Model(HEADS[who], text.counts, 2.0, 0.005 if HEADS[who].own else 2.0)
    before = model.perplexity(text.valid, 700)
    given = next(lstm.segments(text.train, 20))
    losses = [model.step(*given) for _ in range(12)]
    assert losses[-1] < losses[0] and model.training and model.perplexity(text.valid, 700) != before
    lstm_bytes = 2 * 4 * 200 * (2 * 200 + 2) * 4
    assert model.bytes() > 32 * 200 * 4 + lstm_bytes


def test_the_best_of_the_search_is_trained_for_all_the_time(text, tmp_path, monkeypatch):
    monkeypatch.setattr(lstm, "heads", lambda: {"ours": HEADS["ours"]})
    plugs._perplexities(text, SimpleNamespace(seconds=0.2, threads=2, json=str(tmp_path / "found.jsonl")))
    records = [json.loads(line) for line in (tmp_path / "found.jsonl").read_text().splitlines()]
    search = [one for one in records if one["work"] == "plugs.lstm.search"]
    assert len(search) == 6 and len({tuple(one["params"].values()) for one in search}) == 6
    best = min(search, key=lambda one: one["quality"]["valid perplexity"])
    (last,) = (one for one in records if one["work"] == "plugs.lstm.perplexity")
    assert last["params"] == best["params"] | {"seconds": 0.2} and best["params"]["seconds"] == 0.05
    assert math.isfinite(last["quality"]["valid perplexity"][0])
    assert "| ours | 1 |" in tables(read([str(tmp_path / "found.jsonl")]))


def test_a_rate_that_is_too_high_is_an_infinite_perplexity(text):
    found = plugs._learn("SampledLoss", text, 5.0, 1e30, 0.5, 100, SimpleNamespace(threads=2))
    assert found == math.inf
