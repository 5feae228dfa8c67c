"""A pipeline's arrays and stages; what they compute is tested with the model and with the kernels."""

from types import SimpleNamespace

import numpy as np
import pytest

from hybrid import backend
from hybrid.pvm import rules
from hybrid.pvm.model import PVM, Inputs
from hybrid.pvm.pipeline import TOGETHER, Pipeline
from hybrid.pvm.slot import FrameInput, Rates
from tests.support.small_pvm import BLIND, TINY, Scene


def made(config, streams=1):
    settings = {"streams": streams, "threads": 1, "seed": 0, "dtype": np.dtype(np.float32)}
    return Pipeline(config, rules.wire(config), backend.choose("cpu"), **settings)


def test_a_frame_goes_from_the_slot_through_the_stages_and_nothing_calls_back():
    pipeline = made(TINY, streams=2)
    inputs = Inputs(TINY.frame, 2, pipeline.readouts)
    rates = Rates(pipeline.layer, pipeline.layout, TINY).at(0, TINY, frozen=False)
    slot = pipeline.slot()
    slot.fill(0, 0, FrameInput(*inputs.item(Scene(1, streams=2)[0]), True, rates), 0, 2)
    slot.take()
    for stage in pipeline.stages():
        pipeline.inline.run(stage.work, slot)
    assert slot.miss.all() and slot.hidden.shape == (2, 12 * 5 + 4 * 4 + 7)
    np.testing.assert_array_equal(slot.predicted[0], pipeline.tape(0)[:, pipeline.prediction.index[0]])
    assert slot.heat.all() and pipeline.state["world_0"][:, : pipeline.frame_size].max() == 1


@pytest.mark.parametrize("together", [0, 10**6, TOGETHER])
def test_what_a_device_does_is_kept_to_be_launched_again_and_copies_are_not(monkeypatch, together):
    pipeline = made(TINY)
    monkeypatch.setattr("hybrid.pvm.pipeline.TOGETHER", together)
    pipeline.backend = SimpleNamespace(device=SimpleNamespace(host_memory=False))
    kept = {stage.name: getattr(stage.work, "func", None) == pipeline._again for stage in pipeline.stages()}
    apart = {"frame in": False, "tick": True, "readout": True, "home": False}
    assert kept == ({"frame": True} if together else apart)


def test_arrays_are_fetched_by_name_and_put_back():
    pipeline, other = made(TINY), made(TINY)
    arrays = {name: array + 1 for name, array in pipeline.fetch().items()}
    assert {"weights", "velocity", "readout.weights", "readout.velocity", "tape_0", "world_1"} <= set(arrays)
    other.put(arrays | {"of another model": np.zeros(3)})
    assert all(np.array_equal(array, arrays[name]) for name, array in other.fetch().items())
    assert "velocity" not in made(BLIND.__class__(grids=(2, 1), schedule=((0, None, 0.1, None),), readout=None)).fetch()


def test_readouts_learn_where_there_is_a_label_alone():
    model, feed = PVM(TINY), Scene(3)
    before = model.fetch()["readout.weights"].copy()
    model.step(feed[0].image[0])
    assert np.array_equal(model.fetch()["readout.weights"], before)
    model.step(feed[1].image[0], feed[1].box[0])
    assert not np.array_equal(model.fetch()["readout.weights"], before)
