"""A run over a feed: its ticks are those of `step`, and it stops between two of them whatever happens."""

import dataclasses
from types import SimpleNamespace

import numpy as np
import pytest

from cpu.device import Inline
from hybrid.pvm.model import PVM
from tests.hybrid.rise import rise
from tests.support.small_pvm import BLIND, TINY, Scene, assert_same, bytes_of, walk


@pytest.mark.parametrize("streams", [1, 2])
def test_a_run_is_its_steps_bit_for_bit(streams):
    config = TINY if streams == 1 else BLIND  # readouts of several streams: below, once
    one, other = PVM(config, streams=streams), PVM(config, streams=streams)
    feed = Scene(14, streams)
    stepped, ran = walk(one, feed), list(other.run(feed))
    assert_same(ran, stepped)
    assert bytes_of(one) == bytes_of(other)
    assert list(other.run(feed)) == []


def test_a_run_brings_all_home_only_every_so_many_ticks():
    whole, sparse = list(PVM(TINY).run(Scene(7))), list(PVM(TINY).run(Scene(7), every=3))
    assert_same(sparse[::3], whole[::3])
    for one, other in zip(whole, sparse, strict=True):
        assert one.error.tolist() == other.error.tolist()
        assert (other.prediction is None) == bool(other.tick % 3)
        assert bool(other.hidden) == bool(other.heatmaps) == (other.tick % 3 == 0)
    with pytest.raises(ValueError, match="every: found 0"):
        next(PVM(TINY).run(Scene(), every=0))


def test_a_run_goes_on_where_the_model_stands_and_stops_when_left():
    model, other, feed = PVM(TINY), PVM(TINY), Scene(10)
    for seen in model.run(feed):
        if seen.tick == 3:
            break
    assert model.step_number == 4
    assert [seen.tick for seen in model.run(feed)] == [4, 5, 6, 7, 8, 9]
    walk(other, feed)
    assert bytes_of(model) == bytes_of(other)


def test_a_run_allocates_nothing_that_lasts():
    """Beyond the small arrays of what is seen, memory does not rise, not even for a moment, once the run is warm."""
    config = dataclasses.replace(TINY, grids=((6, 8), (3, 4), (1, 1)), hidden=(24,), block=(10, 10))
    frame = np.zeros((1, *config.frame), np.uint8)
    batch = SimpleNamespace(image=frame, box=np.zeros((1, 4), np.float32), labelled=np.zeros(1, bool))
    feed = type("Still", (), {"streams": 1, "__len__": lambda self: 40, "__getitem__": lambda self, tick: batch})()
    model = PVM(config)
    ticks = model.run(feed, every=1000)
    risen = rise(ticks)
    smallest = min(
        array.nbytes for name, array in model.fetch().items() if name.startswith(("tape", "signals", "world"))
    )
    assert risen < smallest, f"{risen} bytes"


def test_a_run_closes_its_queues_however_it_ends(monkeypatch):
    def failing():
        yield Scene()[0].image
        raise OSError("no such file")

    model, closed = PVM(BLIND), []
    queues = set(model.pipeline.queues().values())
    monkeypatch.setattr(Inline, "close", lambda queue: closed.append(queue))
    list(model.run(Scene(3)))
    assert set(closed) == queues
    closed.clear()
    left = model.run(Scene(6))
    next(left)
    left.close()
    assert set(closed) == queues
    closed.clear()
    with pytest.raises(OSError, match="no such file"):
        list(model.run(failing()))
    assert set(closed) == queues


def test_a_step_ends_a_run_that_was_left_between_two_ticks():
    model, whole, feed = PVM(BLIND), PVM(BLIND), Scene(8)
    left = model.run(feed)
    for _ in range(3):
        next(left)
    model.step(feed[3].image)
    with pytest.raises(RuntimeError, match="pvm: found a run that ended when another run or a step began"):
        next(left)
    for tick in range(4):
        whole.step(feed[tick].image)
    assert model.step_number == 4 and np.array_equal(model.prediction(), whole.prediction())


def test_a_freeze_within_a_run_begins_with_the_next_frame_that_is_filled_in_for_units_and_readouts_alike():
    model, stepped, feed = PVM(TINY), PVM(TINY), Scene(12)
    for result in model.run(feed):
        if result.tick == 4:
            model.frozen = True
    for tick in range(len(feed)):
        stepped.frozen = tick > 5  # the frame of tick 5 was filled in while tick 4 was under way
        walk(stepped, feed, tick + 1)
    assert bytes_of(model) == bytes_of(stepped)
