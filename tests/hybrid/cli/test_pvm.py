"""`hybrid train pvm` and `hybrid pvm` as a user meets them: options, help, and every refusal in one line.

What options name is found in hybrid/pvm/source.py; films are made in hybrid/pvm/judge/watch.py.
"""

import json
import subprocess
import sys

import numpy as np
import pytest

from hybrid.cli import main
from hybrid.feeds.video.film import Film
from hybrid.pvm import presets
from hybrid.train.options import choose
from tests.hybrid.pvm.tiny import command as tiny


@pytest.mark.parametrize(
    ("line", "said"),
    [
        (
            ["train", "pvm"],
            ("--config", "flat210m", "--video", "synthetic", "--labels", "--resume", "--tensorboard", "--compat"),
        ),
        (["pvm"], ("watch", "dream", "configs")),
        (["pvm", "dream"], ("--video", "--seed-frames", "partial dream", "freeze", "--learn")),
        (["pvm", "watch"], ("--frames", "--out", "--learn")),
        (["eval"], ("--video", "--labels", "--mode", "--steps")),
        ([], ("train", "pvm")),
    ],
)
def test_help_is_complete(capsys, line, said):
    with pytest.raises(SystemExit) as stop:
        main([*line, "--help"])
    printed = capsys.readouterr().out
    assert stop.value.code == 0 and [word for word in said if word not in printed] == []


@pytest.mark.parametrize("command", ["None", "'doctor'", "'demo'", "'export'"])
def test_help_imports_nothing_heavy(command):
    script = (
        f"import sys; from hybrid.cli import options; options.parser({command});"
        "print(sorted({'numpy', 'numba', 'PIL', 'av', 'tensorboardX'} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_what_models_declare_is_read_without_numba_and_scipy():
    """So that --threads is known before Numba starts its own."""
    script = (
        "import sys; from hybrid.cli import options;"
        "[options.read(['train', name]) for name in ('factors', 'language', 'pvm', 'words')]; options.parser('pvm');"
        "print(sorted({'numba', 'scipy', 'matplotlib', 'av', 'tensorboardX'} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_defaults():
    found = choose("pvm")
    expected = {"config": "quick", "video": "synthetic", "steps": 30_000, "every": 150, "streams": None, "seed": 0}
    assert {name: found[name] for name in expected} == expected
    assert found["kind"] == "pvm" and found["save_every"] == 60


def test_configs_lists_what_comes_with_the_package(capsys):
    assert main(["pvm", "configs"]) == 0
    printed = capsys.readouterr().out
    assert "17,538,806" in printed and "210,984,739" in printed
    assert main(["pvm", "configs", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)["configurations"]
    assert found["small"]["parameters"] == 17_538_806 and set(found) == set(presets.names())


def refusals(folder):
    """(command, what the message must say)"""
    out = folder / "out"
    labels, other = folder / "labels.txt", folder / "other.json"
    labels.write_text("0,0,4,4\n" * 3)
    other.write_text('{"grids": [4, 2')
    video, cut = folder / "video.mp4", folder / "cut.mp4"
    with Film(video, 25) as film:
        for shade in range(5):
            film.write(np.full((16, 16, 3), 40 * shade, np.uint8))
    cut.write_bytes(video.read_bytes()[:-200])
    yield ["train", "pvm", "--config", "smal", "--out", str(out)], "did you mean small?"
    yield ["train", "pvm", "--config", str(folder / "no.json"), "--out", str(out)], "no.json: No such file"
    yield ["train", "pvm", "--config", str(other), "--out", str(out)], "other.json: found"
    yield tiny(folder, out, "--set", "activaton=tanh"), "did you mean activation?"
    yield tiny(folder, out, "--set", "readout.stat=0"), "did you mean readout.start?"
    yield (
        tiny(folder, out, "--set", "readout.start=0", readout=None),
        "--set readout.start=0: found a configuration without",
    )
    yield tiny(folder, out, "--set", "grids=[4,9]"), "hidden: found 3 sizes, expected 2"
    yield tiny(folder, out, "--video", str(folder / "no.mp4")), "no.mp4: there is no such file"
    yield tiny(folder, out, "--video", str(cut)), "cut.mp4: "
    yield tiny(folder, out, "--video", str(labels)), "expected one of"
    yield tiny(folder, out, "--video", str(video), "--labels", str(labels)), "labels.txt"
    yield tiny(folder, out, "--labels", str(labels)), "--labels: found"
    yield tiny(folder, out, "--streams", "17"), "streams: found 17"
    yield tiny(folder, out, "--device", "cuda:9"), 'device: "cuda:9" cannot be used'
    yield ["train", "pvm", "--resume", str(folder / "absent")], "holds no run"
    yield ["pvm", "watch", str(folder)], "holds no run"
    yield ["pvm", "dream", str(folder)], "holds no run"
    yield ["pvm", "dream", str(folder), "--mode", "freeze", "--learn"], "contradict"


def test_bad_input_is_one_clear_line_and_exit_code_2(capsys, tmp_path):
    for line, message in refusals(tmp_path):
        assert main(line) == 2, line
        printed = capsys.readouterr().err
        assert message in printed and printed.startswith("hybrid: error: ") and printed.count("\n") == 1, (
            line,
            printed,
        )
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    ("option", "value", "expected"),
    [
        ("--steps", "0", "from 1"),
        ("--seed", "-1", "from 0"),
        ("--every", "many", "from 1"),
        ("--set", "activation", "NAME=VALUE"),
        ("--compat", "2016", "invalid choice"),
    ],
)
def test_options_out_of_range_are_refused_by_the_parser(capsys, option, value, expected):
    with pytest.raises(SystemExit) as stop:
        main(["train", "pvm", option, value])
    assert stop.value.code == 2
    assert expected in capsys.readouterr().err


def test_notes_on_an_originals_file_are_said_once(capsys, tmp_path):
    path = tmp_path / "theirs.json"
    path.write_text(
        json.dumps({"layer_shapes": [4, 2], "input_block_size": 2, "hidden_block_size": 2, "nonsense": "1"})
    )
    line = ["train", "pvm", "--config", str(path), "--steps", "2", "--out", str(tmp_path / "run"), "--device", "cpu"]
    assert main(line) == 0
    said = [text for text in capsys.readouterr().err.splitlines() if text.startswith("hybrid: ")]
    assert len([text for text in said if "nonsense" in text]) == 1
    assert presets.load(tmp_path / "run" / "config.json")[0].grids == ((4, 4), (2, 2))
