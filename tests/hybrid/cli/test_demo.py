import json

import numpy as np
import pytest

from hybrid.cli import main
from hybrid.cli.commands.demo import _reached


@pytest.fixture(scope="module")
def book(tmp_path_factory):
    rng = np.random.default_rng(0)
    names = ["river", "mountain", "forest", "village", "garden", "castle"]
    clauses = [f"the {name} leads to the {names[(i + 1) % 6]} ," for i, name in enumerate(names)]
    lines = [" ".join(clauses[i] for i in rng.integers(0, 6, 4)) for _ in range(320)]
    path = tmp_path_factory.mktemp("book") / "book.txt"
    path.write_text("\n".join(lines))
    return str(path)


def test_demo_compares_the_readouts_and_writes_everything(capsys, tmp_path, book):
    command = ["demo", "--text", book, "--out", str(tmp_path), "--epochs", "2", "--threads", "2"]
    assert main(command) == 0
    printed = capsys.readouterr().out
    said = "full softmax|Huffman tree|sampled softmax|examples/s|CPU s|to validate|Most likely next words"
    for expected in said.split("|"):
        assert expected in printed
    assert "curve.png" in printed and (tmp_path / "curve.png").read_bytes().startswith(b"\x89PNG")
    assert json.loads((tmp_path / "timeline.json").read_text())["traceEvents"]
    report = json.loads((tmp_path / "report.json").read_text())
    assert all(run["perplexity"] < 5 and run["test_perplexity"] < 5 for run in report["runs"].values())
    assert report["tokens"]["train"] == 8 * report["tokens"]["test"]
    next_words = report["next_words"][0]["next"]
    assert len(next_words) == 5 and next_words[0][1] == max(share for _, share in next_words)


def test_what_a_level_took_is_read_off_the_curve():
    points = ((0.0, 100.0), (1.0, 60.0), (2.0, 40.0))
    curve = [{"seconds": s, "processor_seconds": 3 * s, "perplexity": p} for s, p in points]
    assert _reached(curve, 50.0) == pytest.approx({"seconds": 1.5, "processor_seconds": 4.5})
    assert _reached(curve, 40.0)["seconds"] == pytest.approx(2.0)
    assert _reached(curve, 30.0)["seconds"] == 2.0  # what all of it took, where it does not come so far
    worse = [{"seconds": s, "processor_seconds": s, "perplexity": p} for s, p in ((1.0, 40.0), (2.0, 50.0))]
    assert _reached(worse, 50.0)["seconds"] == 1.0  # there at its first point
