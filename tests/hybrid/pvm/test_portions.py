"""Large arrays in portions: the numbers are those of one pass, whatever the number of threads; what fails is raised."""

import numpy as np
import pytest

from hybrid.pvm import pipeline
from hybrid.pvm.layout import tape_layout
from hybrid.pvm.pipeline import Prediction
from hybrid.pvm.presets import load
from hybrid.pvm.rules import wire


@pytest.fixture(autouse=True)
def small(monkeypatch):
    monkeypatch.setattr(pipeline, "PORTION", 100)


@pytest.mark.parametrize("threads", [3])
def test_what_fails_is_raised(threads):
    def fail(these):
        if these.start == 200:
            raise ValueError("two hundred")

    with pytest.raises(ValueError, match="two hundred"):
        pipeline.in_portions(fail, 1000, threads)


@pytest.mark.parametrize("threads", [1, 3])
def test_a_predicted_frame_has_the_bits_of_one_pass(threads):
    config = load("small")[0]
    made = Prediction(wire(config), tape_layout(wire(config), config), config)
    parts = np.random.default_rng(0).uniform(-0.2, 1.2, (1, 2, made.unit.size)).astype(np.float32)
    expected = np.where(made.covered, np.clip((parts[0] - 0.1) / 0.8, 0, 1), 0).astype(np.float32)
    found = made.shown(parts, threads)
    assert found.dtype == np.float32
    np.testing.assert_array_equal(found.reshape(2, -1).view(np.int32), expected.view(np.int32))
