"""`hybrid train pvm` and `hybrid pvm` as a user meets them: options, help, and every refusal in one line.

What options name is found in hybrid/pvm/source.py; films are made in hybrid/pvm/film.py.
"""

import json
import subprocess
import sys

import pytest

from hybrid.cli import main
from hybrid.pvm import presets
from tests.hybrid.pvm.tiny import command as tiny


@pytest.mark.parametrize("command", ["None", "'sweep'"])
def test_help_imports_nothing_heavy(command):
    script = (
        f"import sys; from hybrid.cli import options; options.parsers({command})[0];"
        "print(sorted({'numpy', 'numba', 'PIL', 'av', 'tensorboardX'} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


@pytest.fixture(scope="module")
def refused(tmp_path_factory):
    """A folder with files that are refused, by name."""
    folder = tmp_path_factory.mktemp("refused")
    (folder / "labels.txt").write_text("0,0,4,4\n" * 3)
    return folder


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("train pvm --config {folder}/no.json --out {out}", "no.json: No such file"),
        ("TINY --set activaton=tanh", "did you mean activation?"),
        ("BARE --set readout.start=0", "--set readout.start=0: found a configuration without"),
        ("TINY --set grids=[4,9]", "hidden: found 3 sizes, expected 2"),
        ("TINY --video {folder}/labels.txt", "expected one of"),
        ("TINY --valid {folder}/no.mp4", "no.mp4: there is no such file"),
        ("pvm watch {folder}", "holds no run"),
    ],
)
def test_bad_input_is_one_clear_line_and_exit_code_2(capsys, tmp_path, refused, line, message):
    first, *words = line.split()
    begun = [first]
    if first in ("TINY", "BARE"):
        begun = tiny(tmp_path, tmp_path / "out", **({"readout": None} if first == "BARE" else {}))
    words = [word.format(folder=refused, out=tmp_path / "out") for word in words]
    assert main([*begun, *words]) == 2
    printed = capsys.readouterr().err
    assert message in printed and printed.startswith("hybrid: error: ") and printed.count("\n") == 1
    assert not (tmp_path / "out").exists()


def test_notes_on_an_originals_file_are_said_once(capsys, tmp_path):
    path = tmp_path / "theirs.json"
    theirs = {"layer_shapes": [4, 2], "input_block_size": 2, "hidden_block_size": 2, "nonsense": "1"}
    path.write_text(json.dumps(theirs))
    line = ["train", "pvm", "--config", str(path), "--steps", "2", "--out", str(tmp_path / "run"), "--device", "cpu"]
    assert main(line) == 0
    said = [text for text in capsys.readouterr().err.splitlines() if text.startswith("hybrid: ")]
    assert len([text for text in said if "nonsense" in text]) == 1
    assert presets.load(tmp_path / "run" / "config.json")[0].grids == ((4, 4), (2, 2))
