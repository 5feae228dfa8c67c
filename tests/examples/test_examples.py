"""Every example runs as a user runs it, on small sizes, and prints the table or writes the picture that it promises."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
EXAMPLES = sorted((ROOT / "examples").glob("*.py"))
SMALL = {  # options that make an example quick, what it prints, and the files that it writes under --out
    "gpu_placement": (["--epochs", "1"], ["all on the CPU", "crosses in a tick"], []),
    "image_trunk": (["--ticks", "60"], ["alexnet  6,", "resnet   6,", "parameters: 11.57 -> "], []),
    "many_labels": (["--labels", "20", "--number", "400"], ["label tree", "one against the rest"], []),
    "next_item": ([], ["among ten recommended", "after comedy 3"], []),
    "own_text": (["--text", "book.txt", "--epochs", "1", "--ask", "word3 word4"], ["perplexity", "word3 word4"], []),
    "pvm_on_a_clip": (["--steps", "20", "--out", "out"], ["1,880,992 weights", "repeating the last"], ["pvm.png"]),
    "sasrec_trunk": (["--epochs", "3"], ["in the first epoch", "among ten recommended"], []),
    "sequence_trunk": (
        ["--text", "book.txt", "--epochs", "1", "--ask", "word3 word4"],
        ["lstm  ", "transformer  ", "word3 word4: "],
        [],
    ),
    "timeline": (
        ["--ticks", "5", "--out", "out"],
        ["ms per step", "readout", "that it could hide"],
        ["timeline.json"],
    ),
    "torch_language_model": (["--text", "book.txt", "--epochs", "1"], ["tree  ", "adaptive  ", "perplexity"], []),
    "transformer_tree": (["--steps", "10"], ["50,257 rows before", "step   10  loss", "tokens continued"], []),
    "tree_on_vectors": (["--classes", "100", "--steps", "50"], ["Huffman tree", "full softmax"], []),
    "units_online": (
        ["--units", "40", "--steps", "50", "--device", "cpu"],
        ["40 units", "repeating the last value"],
        [],
    ),
    "word_vectors": (["--epochs", "1", "--out", "out"], ["nearest", "anchor"], ["vectors.txt"]),
}
PUBLIC = ("from hybrid import ", "from hybrid.sklearn import ", "from hybrid.torch import ")


def test_every_example_is_here():
    assert {path.stem for path in EXAMPLES} == set(SMALL)


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_example(path, tmp_path):
    options, printed, written = SMALL[path.stem]
    (tmp_path / "book.txt").write_text("\n".join(f"word{i % 7} word{i % 7 + 1} word{i % 7 + 2}" for i in range(200)))
    command = [sys.executable, str(path), *options]
    environment = os.environ | {"PYTHONPATH": str(ROOT)}
    done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    assert all(line in done.stdout for line in printed), done.stdout
    assert {file.name for file in (tmp_path / "out").glob("*")} == set(written)


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_example_is_short_and_uses_the_public_names(path):
    lines = path.read_text().splitlines()
    assert len(lines) <= 80
    assert lines[0].startswith('"""') and f"    python examples/{path.name}" in path.read_text()
    ours = [line for line in lines if line.startswith(("import hybrid", "from hybrid", "import cpu", "from cpu"))]
    assert ours and all(line.startswith(PUBLIC) for line in ours)
