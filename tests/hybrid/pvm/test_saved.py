"""Models are saved and loaded, on the same device, and go on to the same bytes; what was altered is refused."""

import dataclasses
import json

import numpy as np
import pytest

from hybrid.pvm import model as saved
from hybrid.pvm.config import Config
from hybrid.pvm.model import PVM
from hybrid.pvm.wiring import Unit, custom, describe
from hybrid.storage import checkpoint
from tests.support.small_pvm import BLIND, TINY, Scene, assert_same, bytes_of, walk

CONFIG = Config(grids=((1, 1),), block=(2, 2), hidden=(3,), schedule=((0, None, 0.1, None),), readout=None)
OWN = custom(
    (4, 5, 2),
    [
        Unit(0, 3, patch=(0, 0, 3, 4), context=(1, 2)),
        Unit(0, 5, patch=(2, 1, 2, 4), context=(0,)),
        Unit(1, 2, signal=(0, 1), context=(2,)),
    ],
)


def written(folder, model, **changes):
    facts = json.loads(json.dumps(model.facts())) | changes
    checkpoint.save(folder, {"weights": np.zeros(99, np.float32)}, {"pvm": facts, "facts": {"mine": 1}})
    return folder


@pytest.mark.parametrize("wiring", [None, OWN], ids=["by rule", "by hand"])
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


@pytest.mark.parametrize("streams", [1, 2])
def test_a_saved_model_goes_on_with_the_same_bytes(tmp_path, streams):
    config = TINY if streams == 1 else BLIND
    model, feed = PVM(config, streams=streams, seed=3), Scene(17, streams)
    walk(model, feed, 7)
    model.save(tmp_path, {"note": "mine"})
    expected = walk(model, feed)
    loaded, facts = PVM.load(tmp_path)
    assert facts == {"note": "mine"}
    assert (loaded.config, loaded.streams, loaded.step_number) == (config, streams, 7)
    assert_same(list(loaded.run(feed)), expected)
    assert bytes_of(loaded) == bytes_of(model)


def own_model(**settings):
    config = dataclasses.replace(BLIND, grids=((2, 1), (1, 1)), hidden=(3, 2))
    return PVM(config, wiring=OWN, **settings)


def test_a_wiring_made_by_hand_is_saved_and_loaded(tmp_path):
    model, frames = own_model(), np.random.default_rng(0).random((9, 4, 5, 2)).astype(np.float32)
    for frame in frames[:5]:
        seen = model.step(frame)
    assert seen.prediction.shape == (4, 5, 2)
    assert (seen.prediction[3, 0] == 0).all() and (seen.prediction[:3, :4] > 0).all()  # nobody sees the corner
    assert [part.shape for part in seen.hidden] == [(1, 8), (1, 2)]  # units of a layer differ
    model.save(tmp_path)
    loaded, _ = PVM.load(tmp_path)
    assert loaded.wiring.patch == OWN.patch
    for frame in frames[5:]:
        assert_same([loaded.step(frame)], [model.step(frame)])
    assert bytes_of(loaded) == bytes_of(model)
    with pytest.raises(ValueError, match="wiring: found 2 layers, expected 3"):
        PVM(BLIND, wiring=OWN)


def test_numbers_that_are_not_finite_are_not_saved(tmp_path):
    """They show in the error only when the next frames come."""
    model = PVM(TINY)
    walk(model, Scene(3))
    model.save(tmp_path)
    model.weights[7] = np.inf
    with pytest.raises(ValueError, match=r"before tick 3: weights.*NaN or infinity"):
        model.save(tmp_path)
    assert np.isfinite(PVM.load(tmp_path)[0].weights).all()


def test_a_checkpoint_of_something_else_is_refused(tmp_path):
    from hybrid.storage import checkpoint

    checkpoint.save(tmp_path, {"weights": np.zeros(3)}, {"engine": {}})
    with pytest.raises(ValueError, match="expected one of a Predictive Vision Model"):
        PVM.load(tmp_path)
