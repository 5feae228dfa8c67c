"""`hybrid pvm compare A B` (hybrid/pvm/evaluate.py): figures of `hybrid eval`, settings that differ, a picture."""

import json

import numpy as np
import pytest
from PIL import Image

from hybrid.cli import main
from hybrid.feeds.video.film import Film
from tests.hybrid.pvm.tiny import command


@pytest.fixture(scope="module")
def two(tmp_path_factory):
    """Two runs of the synthetic scene."""
    folder = tmp_path_factory.mktemp("two")
    assert main(command(folder, folder / "a", "--steps", "40")) == 0
    assert main(command(folder, folder / "b", "--steps", "60", "--set", "activation=logistic", "--seed", "3")) == 0
    return folder / "a", folder / "b"


def test_figures_are_those_of_eval_and_settings_those_that_differ(capsys, two, tmp_path):
    a, b = map(str, two)
    picture = tmp_path / "picture.png"
    assert main(["pvm", "compare", a, b, "--steps", "30", "--json", "-o", str(picture)]) == 0
    found = json.loads(capsys.readouterr().out)
    for name, run in (("A", a), ("B", b)):
        assert main(["eval", run, "--steps", "30", "--json"]) == 0
        alone = json.loads(capsys.readouterr().out)
        assert {key: found["runs"][name][key] for key in alone} == alone
    assert found["settings"] == {"seed": [0, 3], "activation": ["rational", "logistic"]}
    assert [found["runs"][name]["steps_learned"] for name in "AB"] == [40, 60]
    assert found["runs"]["A"]["parameters"] > 0
    assert np.array(Image.open(picture)).std() > 10


def test_the_table_has_a_line_a_figure(capsys, two):
    a, b = map(str, two)
    assert main(["pvm", "compare", a, b, "--steps", "20"]) == 0
    printed = capsys.readouterr().out
    lines = printed.splitlines()
    assert lines[0].split() == ["A", "B"] and lines[1].split() == ["run", a, b]
    rows = {line[:24].strip(): line[24:].split() for line in lines[2:]}
    assert rows["steps"] == ["40", "60"] and rows["activation *"] == ["rational", "logistic"]
    assert len(rows["error, layer 2"]) == len(rows["ratio (less is better)"]) == 2
    assert (two[0] / "compare.png").exists() and "compare.png" in printed


def test_runs_of_different_videos_need_one_for_both(capsys, two, tmp_path):
    video, run = tmp_path / "video", tmp_path / "run"
    with Film(video, 25) as film:
        for shade in range(6):
            film.write(np.full((8, 8, 3), 40 * shade, np.uint8))
    assert main(command(tmp_path, run, "--video", str(video), "--steps", "6")) == 0
    capsys.readouterr()
    assert main(["pvm", "compare", str(two[0]), str(run)]) == 2
    said = capsys.readouterr().err.splitlines()[-1]
    assert "--video: found none, and A was trained on synthetic, B on " in said
    assert main(["pvm", "compare", str(two[0]), str(run), "--video", str(video), "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    readouts = [found["runs"][name]["readout_parameters"] for name in "AB"]
    assert readouts[0] > 0 == readouts[1], "of the run, not of what is shown without labels"
