"""The rivals of the LSTM language model: all learn the same text alike."""

import pytest

pytest.importorskip("torch")

from bench.step import plugs

HEADS = plugs.heads()


@pytest.fixture
def text(tmp_path, monkeypatch):
    """A text in which every word says which one is next."""
    (tmp_path / "wikitext-2").mkdir()
    lines = (" ".join(f"w{(i + t) % 30}" for t in range(30)) for i in range(400))
    (tmp_path / "wikitext-2" / "train.txt").write_text("<unk>\n" + "\n".join(lines) + "\n")
    monkeypatch.setenv("HYBRID_DATA", str(tmp_path))
    return plugs.wikitext()


@pytest.mark.parametrize("who", HEADS)
def test_every_rival_learns(text, who):
    model = plugs.Model(HEADS[who], text.counts, 2.0, 0.005 if HEADS[who].own else 2.0)
    given = next(plugs.segments(text.train, 20))
    losses = [model.step(*given) for _ in range(12)]
    assert losses[-1] < losses[0] and model.training
    lstm_bytes = 2 * 4 * 200 * (2 * 200 + 2) * 4
    assert model.bytes() > 32 * 200 * 4 + lstm_bytes
