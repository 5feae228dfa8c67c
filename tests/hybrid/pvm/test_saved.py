"""What a checkpoint tells of a model, read back as it was."""

import json

import numpy as np
import pytest

from hybrid.pvm import saved
from hybrid.pvm.config import Config
from hybrid.pvm.wiring import Unit, custom, describe
from hybrid.storage import checkpoint

CONFIG = Config(grids=((1, 1),), block=(2, 2), hidden=(3,), schedule=((0, None, 0.1, None),), readout=None)
OWN = custom((2, 2, 3), [Unit(0, 3, patch=(0, 0, 2, 2))])


def written(folder, model, **changes):
    facts = json.loads(json.dumps(model.facts())) | changes
    checkpoint.save(folder, {"weights": np.zeros(99, np.float32)}, {"pvm": facts, "facts": {"mine": 1}})
    return folder


@pytest.mark.parametrize("wiring", [None, OWN])
def test_all_comes_back(tmp_path, wiring):
    model = saved.Saved(CONFIG, wiring, 2, 7, "float32", 11, True)
    found, facts = saved.read(written(tmp_path / "checkpoint", model))
    assert facts == {"mine": 1}
    assert found._replace(wiring=None) == model._replace(wiring=None)
    assert (found.wiring and describe(found.wiring)) == (wiring and describe(wiring))


def test_another_kind_and_a_number_that_cannot_be_are_refused(tmp_path):
    checkpoint.save(tmp_path / "engine", {"x": np.zeros(3, np.float32)}, {"engine": {}, "facts": {}})
    with pytest.raises(ValueError, match="found a checkpoint of another kind"):
        saved.read(tmp_path / "engine")
    folder = written(tmp_path / "checkpoint", saved.Saved(CONFIG, None, 1, 0, "float32", 5, False), step=-5)
    with pytest.raises(ValueError, match="step: found -5"):
        saved.read(folder)


def test_a_configuration_of_more_than_the_checkpoint_holds_is_refused(tmp_path):
    model = saved.Saved(CONFIG, None, 1, 0, "float32", 5, False)
    large = model.facts()["config"] | {"grids": [[9, 9]]}
    with pytest.raises(ValueError, match="it was altered"):
        saved.read(written(tmp_path / "checkpoint", model, config=large))
