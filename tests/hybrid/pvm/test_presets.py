import dataclasses

import pytest

from hybrid import Scene
from hybrid.feeds.video.frames import Frames
from hybrid.pvm.config import Config
from hybrid.pvm.evaluate import Watcher, alone
from hybrid.pvm.model import PVM
from hybrid.pvm.presets import load


def test_files_of_ours(tmp_path):
    wanted = Config(name="mine", grids=(3, 1), schedule=((0, None, 0.1, 0.2),), lateral_at=7, readout=None)
    (tmp_path / "mine.json").write_text(wanted.to_json())
    toml = 'grids = [3, [1, 1]]\nlateral_at = 7\nreadout = false\nschedule = [[0, "all", 0.1, 0.2]]\n'
    (tmp_path / "mine.toml").write_text(toml)
    assert load(tmp_path / "mine.json") == (wanted, [])
    assert load(str(tmp_path / "mine.toml")) == (wanted, [])


def test_files_that_say_nothing_are_refused(tmp_path):
    broken = tmp_path / "broken.json"
    broken.write_text("[1]")
    with pytest.raises(ValueError, match=r"broken.json: found a list"):
        load(broken)
    with pytest.raises(ValueError, match=r"found 'smal', expected a file .* did you mean small"):
        load("smal")
    with pytest.raises(OSError, match="absent"):
        load(tmp_path / "absent.json")


def test_the_configuration_of_changes_predicts_a_scene_that_it_has_not_learned():
    config = dataclasses.replace(load("change")[0], grids=((5, 5), (2, 2), (1, 1)), hidden=(32, 16, 8), readout=None)
    model = PVM(config.stretched(800), streams=4, device="cpu")
    for _ in model.run(Frames([Scene(config.frame)], 800, 4), every=800):
        pass
    model = alone(model)
    model.frozen = True
    for seed in (1, 2):
        watcher, scene = Watcher(model), Scene(config.frame, 200, seed=seed)
        for number in range(200):
            watcher.see(scene[number].image)
        assert watcher.figures()["prediction_to_last_frame"] < 0.98
