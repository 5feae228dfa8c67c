import json

import numpy as np
import pytest

from hybrid.cli import main
from hybrid.demo import _reached


@pytest.fixture(scope="module")
def book(tmp_path_factory):
    rng = np.random.default_rng(0)
    names = ["river", "mountain", "forest", "village", "garden", "castle"]
    lines = [
        " ".join(f"the {names[i]} leads to the {names[(i + 1) % 6]} ," for i in rng.integers(0, 6, 4))
        for _ in range(200)
    ]
    path = tmp_path_factory.mktemp("book") / "book.txt"
    path.write_text("\n".join(lines))
    return str(path)


def test_demo_compares_both_readouts_and_writes_everything(capsys, tmp_path, book):
    command = ["demo", "--text", book, "--out", str(tmp_path), "--epochs", "2", "--threads", "2"]
    assert main(command) == 0
    printed = capsys.readouterr().out
    for expected in (
        "full softmax",
        "Huffman tree",
        "examples/s",
        "Most likely next words",
        "Annoy",
        "exact:",
        "recall",
    ):
        assert expected in printed
    for file in ("curve.png", "timeline.png"):
        assert file in printed and (tmp_path / file).read_bytes().startswith(b"\x89PNG")
    assert json.loads((tmp_path / "timeline.json").read_text())["traceEvents"]
    report = json.loads((tmp_path / "report.json").read_text())
    assert report["runs"]["full"]["perplexity"] < 5 and report["runs"]["tree"]["perplexity"] < 5
    assert 0.8 <= report["neighbours"]["recall"] <= 1
    next_words = report["next_words"][0]["next"]
    assert len(next_words) == 5 and next_words[0][1] == max(share for _, share in next_words)


def test_seconds_to_a_level_are_read_off_the_curve():
    curve = [{"seconds": s, "perplexity": p} for s, p in ((0.0, 100.0), (1.0, 60.0), (2.0, 40.0))]
    assert _reached(curve, 50.0) == pytest.approx(1.5)
    assert _reached(curve, 40.0) == pytest.approx(2.0)
