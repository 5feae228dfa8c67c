"""Small trained runs to copy: each is trained once in a process."""

import functools
import json
import shutil
import tempfile
from pathlib import Path

from hybrid.cli import main
from tests.support.small_runs import write_data

MACHINE = ["--threads", "1", "--device", "cpu"]
SIZES = ["--width", "4", "--epochs", "2"]
TRUNK = [*SIZES, "--trunk", "mlp", "--hidden", "6", "--readout-width", "4", "--batch", "64", "--rate", "0.1", *MACHINE]
WORDS = ["words", "--text", "text.txt", "--min-count", "1", "--window", "2", "--threads", "1", *SIZES]
RUNS = {
    "language_tree": ["language", "--text", "text.txt", "--readout", "tree", *TRUNK],
    "words_skipgram": [*WORDS, "--readout", "sampled"],
    "words_cbow": [*WORDS, "--model", "cbow", "--readout", "tree"],
    "factors_tree": ["factors", "--ratings", "u.data", "--readout", "tree", *TRUNK],
    "pvm_unit": ["pvm", "--video", "synthetic", "--config", "unit.json", "--steps", "12", *MACHINE],
}
UNIT = {"name": "unit", "grids": [2, 2, 1], "block": 2, "hidden": [3], "readout": {"kind": "unit", "hidden": [3]}}


@functools.cache
def data() -> Path:
    """The folder of what the runs learn from: text.txt, u.data, unit.json."""
    folder = write_data(Path(tempfile.mkdtemp(prefix="hybrid-trained-")))
    (folder / "unit.json").write_text(json.dumps(UNIT))
    return folder


@functools.cache
def _trained(name: str) -> Path:
    run = data() / name
    said = [str(data() / word) if word.endswith((".txt", ".data", ".json")) else word for word in RUNS[name]]
    assert main(["train", *said, "--quiet", "--out", str(run)]) == 0
    return run


def copied(name: str, folder: Path) -> Path:
    """A copy of a run in a folder."""
    run = folder / name
    shutil.copytree(_trained(name), run)
    for path in run.glob("*.json"):
        path.write_text(path.read_text().replace(str(_trained(name)), str(run)))
    return run
