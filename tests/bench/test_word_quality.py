"""What measures quality: the same sentences and settings for ours and gensim, a figure a seed."""

from types import SimpleNamespace

import numpy as np
import pytest

from bench import word_quality


@pytest.fixture
def data(tmp_path, monkeypatch):
    for folder in ("wikitext-2", "similarity"):
        (tmp_path / folder).mkdir()
    rng = np.random.default_rng(0)
    lines = (" ".join(f"w{i}" for i in rng.integers(0, 30, 20)) + " <unk>" for _ in range(100))
    (tmp_path / "wikitext-2" / "train.txt").write_text("\n".join(lines))
    pairs = "".join(f"w{i}\tw{i + 1}\t{i % 7}\n" for i in range(20))
    (tmp_path / "similarity" / "wordsim353.tsv").write_text(pairs)
    (tmp_path / "similarity" / "simlex999.txt").write_text(pairs)
    (tmp_path / "similarity" / "questions-words.txt").write_text(": section\nw0 w1 w2 w3\n")
    monkeypatch.setenv("HYBRID_DATA", str(tmp_path))
    return tmp_path


def test_ours_and_gensim_learn_from_the_same_words(data):
    chosen = word_quality._options(data / "wikitext-2" / "train.txt", "skipgram", "tree", 1, 0, 1)
    (_, theirs), *_ = [*word_quality._gensim().items()] or [pytest.skip("gensim is missing")]
    (ours, rows), (words, vectors) = word_quality._ours(chosen), theirs(chosen)
    assert sorted(ours) == sorted(words) and "<unk>" not in ours
    assert rows.shape == vectors.shape == (30, 100)
    asked = {name: data / "similarity" / file for name, file in word_quality.FILES.items()}
    record = word_quality._record("ours", lambda _: (ours, rows), [chosen, chosen], asked)
    assert all(len(values) == 2 for values in record["quality"].values()) and record["seeds"] == [0, 0]


def test_what_is_missing_is_named(tmp_path, monkeypatch, capsys):
    monkeypatch.setenv("HYBRID_DATA", str(tmp_path))
    assert word_quality.run(SimpleNamespace(quick=True, threads=1, json=None)) == 1
    assert "train.txt is missing: HYBRID_DATA" in capsys.readouterr().out
