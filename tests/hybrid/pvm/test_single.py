"""A model of one stream stands where the first stream of another does."""

import numpy as np
import pytest

from hybrid.pvm.evaluate import follow, single
from hybrid.pvm.model import PVM
from hybrid.pvm.presets import load
from tests.hybrid.pvm.tiny import TINY


@pytest.mark.parametrize("readouts", [True, False])
def test_it_says_of_a_frame_what_the_first_stream_of_the_other_says(readouts):
    model = PVM.from_config(load(TINY)[0], device="cpu", threads=1, streams=3)
    frames = np.random.default_rng(2).random((6, 3, *model.wiring.frame), np.float32)
    for frame in frames[:5]:
        model.step(frame)
    one = single(model, readouts=readouts)
    follow(one, model)
    assert (one.streams, one.tick, one.readouts is not None) == (1, 5, readouts)
    model.frozen = one.frozen = True
    said, expected = one.step(frames[5][0]), model.step(frames[5])
    assert np.allclose(said.prediction, expected.prediction[0], atol=1e-6)
    assert all(
        np.allclose(mine, theirs[0], atol=1e-6) for mine, theirs in zip(said.hidden, expected.hidden, strict=True)
    )
