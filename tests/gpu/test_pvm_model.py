"""The whole Predictive Vision Model on a device: against the CPU, in any order of completion, ahead of its caller, resumed."""

import itertools
import random

import numpy as np
import pytest

from hybrid.pvm import pipeline
from hybrid.pvm.model import PVM
from tests.support.interrupts import Kills, drained
from tests.support.small_pvm import BLIND, TINY, Scene, assert_same, bytes_of, walk


@pytest.fixture
def way(request, monkeypatch):
    """Small frames go through one stage; here larger ones too, whose copies are apart."""
    if request.param == "apart":
        monkeypatch.setattr(pipeline, "TOGETHER", 0)


def ways(names, *cases):
    return pytest.mark.parametrize(f"way, {names}", cases, indirect=["way"])


@ways("streams", ("one", 1), ("apart", 2))
def test_it_is_that_of_the_cpu(cuda, way, streams):
    config = TINY if streams == 1 else BLIND
    found, expected = PVM(config, streams=streams, device=cuda), PVM(config, streams=streams, device="cpu")
    feed = Scene(12, streams)
    for one, other in zip(found.run(feed), expected.run(feed), strict=True):
        np.testing.assert_allclose(one.error, other.error, rtol=0, atol=1e-6)
        np.testing.assert_allclose(one.prediction, other.prediction, rtol=0, atol=1e-5)
        for a, b in zip([*one.hidden, *one.heatmaps], [*other.hidden, *other.heatmaps], strict=True):
            np.testing.assert_allclose(a, b, rtol=0, atol=1e-5)


@ways(
    "ahead, orders",
    *((*case, 2) for case in (("one", 0), ("apart", 1), ("one", 5))),
    *(pytest.param(way, ahead, 10, marks=pytest.mark.slow) for way in ("one", "apart") for ahead in (0, 1, 5)),
)
def test_a_run_is_its_steps_bit_for_bit_in_any_order_of_completion(gpu, cuda, way, ahead, orders):
    feed, stepped = Scene(11), PVM(TINY, device=cuda)
    expected = walk(stepped, feed)
    for _ in gpu.orders(orders if gpu.simulated else 2):
        model = PVM(TINY, device=cuda)
        seen = list(model.run(feed, every=3, ahead=ahead))
        assert_same(seen[::3], expected[::3])
        assert [one.error.tolist() for one in seen] == [one.error.tolist() for one in expected]
        assert bytes_of(model) == bytes_of(stepped)


@ways("ahead", ("apart", 5))
def test_interrupted_at_any_tick_it_goes_on_to_the_same_bytes(cuda, way, monkeypatch, tmp_path, ahead):
    feed, whole, model, rng = Scene(14), PVM(TINY, device=cuda), PVM(TINY, device=cuda), random.Random(ahead)
    walk(whole, feed)
    kills = Kills(monkeypatch)
    while model.tick < len(feed):
        if kills.during(drained(model.run(feed, every=4, ahead=ahead)), rng.randrange(1, 5)):
            model.save(tmp_path)
    assert kills.caught >= 2 and bytes_of(model) == bytes_of(whole)


def test_ahead_it_saves_after_complete_ticks_alone(cuda, tmp_path):
    model, whole, feed = PVM(TINY, device=cuda), PVM(TINY, device=cuda), Scene(12)
    for seen in model.run(feed, every=4, ahead=3):
        if seen.tick == 4:
            model.save(tmp_path / "checkpoint")
        elif seen.tick == 5:
            with pytest.raises(ValueError, match=r"save: \d ticks are under way"):
                model.save(tmp_path / "other")
    resumed, _ = PVM.load(tmp_path / "checkpoint", device=cuda)
    assert resumed.tick == 5
    walk(whole, feed)
    list(resumed.run(feed, every=4, ahead=3))
    assert bytes_of(resumed) == bytes_of(model) == bytes_of(whole)


def test_a_caller_that_stops_finds_the_model_between_two_ticks(cuda, ahead=4):
    model, whole, feed = PVM(TINY, device=cuda), PVM(TINY, device=cuda), Scene(12)
    for _ in itertools.islice(model.run(feed, every=100, ahead=ahead), 3):
        pass
    assert 3 <= model.tick <= 3 + ahead
    walk(whole, feed, model.tick)
    assert bytes_of(model) == bytes_of(whole)
    list(model.run(feed, ahead=ahead))
    walk(whole, feed)
    assert bytes_of(model) == bytes_of(whole)


@pytest.mark.parametrize("ahead", [0, 4])
def test_where_a_frame_is_missing_too(cuda, ahead):
    class Broken(Scene):
        def __getitem__(self, tick):
            if tick == 7:
                raise OSError("no such file")
            return super().__getitem__(tick)

    model, whole = PVM(TINY, device=cuda), PVM(TINY, device=cuda)
    with pytest.raises(OSError, match="no such file"):
        list(model.run(Broken(12), every=100, ahead=ahead))
    assert model.tick == (7 if ahead else 6)  # a frame that is sent and not yet seen is let go
    walk(whole, Scene(12), model.tick)
    assert bytes_of(model) == bytes_of(whole)


@pytest.mark.parametrize("there_and_back", [("cpu", "cuda:0"), ("cuda:0", "cpu")])
def test_a_checkpoint_goes_on_on_the_other_device(cuda, tmp_path, there_and_back):
    first, second = there_and_back
    feed, whole, begun = Scene(12), PVM(TINY, device=first), PVM(TINY, device=first)
    expected = walk(whole, feed)[6:]
    walk(begun, feed, 6)
    begun.save(tmp_path / "checkpoint")
    resumed, _ = PVM.load(tmp_path / "checkpoint", device=second)
    for one, other in zip(resumed.run(feed), expected, strict=True):
        np.testing.assert_allclose(one.error, other.error, rtol=0, atol=1e-6)
        np.testing.assert_allclose(one.prediction, other.prediction, rtol=0, atol=1e-5)
