"""`hybrid train pvm` and `hybrid pvm` as a user meets them: options, help, and every refusal in one line."""

import json
import subprocess
import sys

import numpy as np
import pytest

from hybrid.cli import main, options
from hybrid.feeds.video.film import Film
from hybrid.pvm import command, presets
from hybrid.pvm.judge import modes

from .tiny import command as tiny


@pytest.mark.parametrize(
    ("typed", "joined"),
    [
        (["train", "pvm", "--seed", "3"], ["train pvm", "--seed", "3"]),
        (["--debug", "train", "pvm"], ["--debug", "train pvm"]),
        (["train", "words", "--text", "pvm"], ["train", "words", "--text", "pvm"]),
        (["pvm", "watch", "train"], ["pvm", "watch", "train"]),
        ([], []),
    ],
)
def test_train_pvm_is_one_word(typed, joined):
    assert command.joined(typed) == joined


def test_the_lists_of_names_are_those_of_their_modules():
    """They stand twice, so that --help imports nothing."""
    assert command.configurations() == presets.names()
    assert sorted(command.MODES) == sorted(modes.NAMES)


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
        ([], ("train pvm", "pvm")),
    ],
)
def test_help_is_complete(capsys, line, said):
    with pytest.raises(SystemExit) as stop:
        main([*line, "--help"])
    printed = capsys.readouterr().out
    assert stop.value.code == 0 and [word for word in said if word not in printed] == []


def test_help_imports_nothing_heavy():
    script = (
        "import sys; from hybrid.cli import options; options.parser();"
        "print(sorted({'numpy', 'numba', 'PIL', 'av', 'tensorboardX'} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_defaults():
    given = vars(options.parser().parse_args(["train pvm"]))
    found = options.resolve(given)
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
    yield ["train", "--seed", "3", "pvm"], "it comes first"
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
