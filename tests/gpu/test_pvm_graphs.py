"""Frames of a Predictive Vision Model as graphs: the bytes of a run without them, whatever changes from tick to tick."""

import dataclasses
import functools
import gc

import numpy as np
import pytest

from gpu.runtime.queues import Recorder
from hybrid.pvm import pipeline
from hybrid.pvm.config import Config, Readout
from hybrid.pvm.model import PVM
from tests import cudasim
from tests.support.small_pvm import BLIND, FRAME, TINY, Scene, assert_same, bytes_of, walk

# A slot has the same arrays every 6: a frame is recorded the second time, and comes from a graph from then on
TICKS = 36
CHANGING = dataclasses.replace(
    TINY,
    schedule=((0, None, 0.05, 0.3), (13, 1, 0.02, None), (19, None, 0.0, None), (23, None, 0.04, None)),
    lateral_at=5,
    feedback_at=16,
    readout=Readout(hidden=(6,), schedule=((0, 0.5), (30, 0.1)), start=4),
)
RESTING = Config(
    grids=((3, 4), (1, 1)),
    block=(2, 3),
    hidden=(5, 7),
    wiring="classic",
    squeeze=False,
    predict_steps=2,
    schedule=tuple(
        (at, None, rate, None) for at, rate in ((0, 0.05), (6, 0.04), (12, 0.03), (18, 0.0), (24, 0.1), (30, 0.02))
    ),
)
MODELS = {"changing": (CHANGING, 1), "several streams": (BLIND, 2), "resting": (RESTING, 1)}


def plain(recorder, key, work, *arguments):
    work(*arguments)


class Feed(Scene):
    """A scene without labels for some frames."""

    def __getitem__(self, tick):
        self.labelled = tick not in (33, 34, 35)
        return super().__getitem__(tick)


def seen(model, ahead):
    feed = Feed if model.config.readout else functools.partial(Scene, labelled=False)
    return list(model.run(feed(TICKS, model.streams), every=3, ahead=ahead))


@pytest.fixture
def without(monkeypatch):
    """What a run without graphs gives."""

    def run(config, streams, **run):
        with monkeypatch.context() as patch:
            patch.setattr(Recorder, "run", plain)
            model = PVM(config, streams=streams, device="cuda:0")
            return seen(model, **run), bytes_of(model)

    return run


@pytest.mark.parametrize(
    ("name", "ahead", "together"), [("changing", 4, False), ("several streams", 0, True), ("resting", 4, True)]
)
def test_they_change_no_byte(gpu, cuda, monkeypatch, without, name, ahead, together):
    config, streams = MODELS[name]
    if not together:
        monkeypatch.setattr(pipeline, "TOGETHER", 0)
    expected, end = without(config, streams, ahead=ahead)
    gpu.order(1)
    model = PVM(config, streams=streams, device=cuda)
    assert_same(seen(model, ahead)[::3], expected[::3])
    assert bytes_of(model) == end


def test_nor_do_they_where_the_user_freezes_the_model_between_two_frames(cuda, without, monkeypatch):
    moving = dataclasses.replace(BLIND, schedule=((0, None, 0.05, 0.3), (16, 1, 0.015, None), (23, 0, 0.022, None)))

    def changed(model):
        for tick in range(TICKS):
            model.step(Scene(TICKS)[tick].image[0])
            model.frozen = tick in (18, 19)
        return bytes_of(model)

    found = changed(PVM(moving, device=cuda))
    monkeypatch.setattr(Recorder, "run", plain)
    assert found == changed(PVM(moving, device=cuda))


def test_frames_of_bytes_and_of_numbers_take_turns(cuda, monkeypatch):
    rng = np.random.default_rng(0)
    frames = [rng.integers(0, 256, FRAME).astype(np.uint8) for _ in range(24)]
    frames = [frame if k % 4 else np.float32(1 / 255) * frame for k, frame in enumerate(frames)]
    model = PVM(BLIND, device=cuda)
    list(model.run(frames))
    monkeypatch.setattr(Recorder, "run", plain)
    other = PVM(BLIND, device=cuda)
    list(other.run(frames))
    assert bytes_of(model) == bytes_of(other)


def test_a_run_resumed_amid_graphs_goes_on_to_the_same_bytes(cuda, tmp_path):
    whole, begun = PVM(TINY, device=cuda), PVM(TINY, device=cuda)
    walk(whole, Scene(TICKS))
    walk(begun, Scene(TICKS), 17)
    begun.save(tmp_path)
    resumed, _ = PVM.load(tmp_path, device=cuda)
    walk(resumed, Scene(TICKS))
    assert bytes_of(resumed) == bytes_of(whole)
    begun.pipeline.restore(tmp_path)  # arrays are written where graphs find them
    walk(begun, Scene(TICKS))
    assert bytes_of(begun) == bytes_of(whole)


def test_a_frame_that_fails_while_it_is_recorded_leaves_a_torn_model_and_a_device_that_works(simulated, cuda):
    model = PVM(TINY, device=cuda)
    walk(model, Scene(TICKS), 6)
    cudasim.fail("launch:2")
    try:
        with pytest.raises(OSError, match="too many resources"):
            walk(model, Scene(TICKS))
    finally:
        cudasim.fail()
    with pytest.raises(ValueError, match="failed midway"):
        walk(model, Scene(TICKS))
    other, expected = PVM(TINY, device=cuda), PVM(TINY, device="cpu")
    walk(other, Scene(TICKS))
    walk(expected, Scene(TICKS))
    np.testing.assert_allclose(other.fetch()["weights"], expected.fetch()["weights"], atol=1e-5)


@pytest.mark.parametrize("ahead", [0, 4])
def test_a_frame_is_one_launch_and_graphs_go_with_the_run(gpu, cuda, ahead):
    model = PVM(TINY, device=cuda)
    gc.collect()  # models of other tests
    device, launches = model.pipeline.backend.device, []
    assert device.allocated["graphs"] == 0
    for _ in model.run(Scene(60), every=100, ahead=ahead):
        if gpu.simulated:
            launches.append(cudasim.counts()["launch"])
        made = device.allocated["graphs"]
    assert set(np.diff(launches[-30:-10])) <= {1}
    assert made == np.lcm(6, max(ahead, 1) + 2)
    gc.collect()
    assert device.allocated["graphs"] == 0
