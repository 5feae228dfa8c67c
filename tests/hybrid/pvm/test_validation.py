"""A model that learns is measured on another video, and does not notice."""

import numpy as np
import pytest

from hybrid.pvm.evaluate import Validation
from hybrid.pvm.model import PVM
from hybrid.pvm.presets import load
from hybrid.pvm.source import clips
from tests.hybrid.pvm.tiny import TINY


def learned(streams=1, ticks=12):
    model = PVM.from_config(load(TINY)[0], device="cpu", threads=1, streams=streams)
    frames = np.random.default_rng(1).random((ticks, streams, *model.wiring.frame), np.float32)
    for frame in frames:
        model.step(frame if streams > 1 else frame[0])
    return model


@pytest.mark.parametrize("streams", [3])
def test_figures_are_those_of_the_model_frozen_and_it_is_left_as_it_was(streams):
    model = learned(streams)
    before = {name: array.copy() for name, array in model.fetch().items()}
    validation = Validation(model, clips("synthetic:5", model.config.frame))
    first = validation.figures(model)
    assert first == validation.figures(model)  # nothing is learned, nothing remembered
    assert model.tick == 12 and all(np.array_equal(before[name], array) for name, array in model.fetch().items())
    assert 0 < first["valid last_frame"] < first["valid prediction"] < 1  # it has learned noise
