"""A model: its frames, steps and runs, what it tells of itself, and that it is saved and goes on with the same bytes."""

import dataclasses
from types import SimpleNamespace

import numpy as np
import pytest

from cpu.device import Inline
from hybrid import machine
from hybrid.feeds.video.clip import Frame
from hybrid.feeds.video.clips import synthetic
from hybrid.feeds.video.frames import Frames
from hybrid.pvm.model import PVM, by_layer, fewest
from hybrid.pvm.wiring import Unit, custom
from hybrid.storage import checkpoint
from tests.hybrid.rise import rise
from tests.support.readouts import changed
from tests.support.small_pvm import BLIND, FRAME, TINY, Scene, assert_same, bytes_of, walk


def test_a_model_whose_momentum_has_no_room_is_refused(monkeypatch):
    memory = []
    monkeypatch.setattr(machine, "memory", lambda: memory[0])
    least = 4 * fewest(BLIND)
    for momentum, copies in ((0.0, 1), (0.5, 2)):
        config = dataclasses.replace(BLIND, schedule=((0, None, 0.05, momentum),))
        memory[:] = [copies * least]
        assert ("velocity" in PVM(config).fetch()) == (momentum > 0)
        memory[:] = [copies * least - 1]
        with pytest.raises(MemoryError, match="pvm: found at least"):
            PVM(config)


def test_a_step_gives_the_error_the_next_frame_what_units_publish_and_heatmaps():
    model = PVM(TINY)
    assert model.size == (model.weights.size, model.readouts.weights.size)
    for tick, seen in enumerate(walk(model, Scene(3))):
        assert seen.tick == tick
        assert seen.error.shape == (3,) and seen.error.dtype == np.float64
        assert seen.prediction.shape == FRAME and seen.prediction.dtype == np.float32
        assert 0 <= seen.prediction.min() <= seen.prediction.max() <= 1
        assert [part.shape for part in seen.hidden] == [(12, 5), (4, 4), (1, 7)]
        assert [heat.shape for heat in seen.heatmaps] == [FRAME[:2]]
        assert seen.heatmap is seen.heatmaps[0]
    assert model.tick == 3
    blind = PVM(BLIND)
    seen = walk(blind, Scene(1))[0]
    assert seen.heatmaps == [] and seen.heatmap is None
    assert blind.size[1] == 0


def test_bytes_and_floats_are_the_same_frames():
    feed = Scene(5)
    bytes_seen, floats_seen, doubles_seen = PVM(BLIND), PVM(BLIND), PVM(BLIND)
    for tick in range(5):
        image = feed[tick].image[0]
        one = bytes_seen.step(image)
        other = floats_seen.step(image.astype(np.float32) / 255)
        third = doubles_seen.step((image / 255)[None])
        np.testing.assert_allclose(one.prediction, other.prediction, rtol=0, atol=1e-6)
        np.testing.assert_allclose(one.prediction, third.prediction, rtol=0, atol=1e-6)
    assert len(list(PVM(BLIND).run([feed[tick].image[0] / 255 for tick in range(5)]))) == 5


def test_hidden_numbers_by_layer_and_layers_of_units_that_differ_in_one_row():
    patches = [Unit(0, 2, patch=(0, 0, 2, 2)), Unit(0, 2, patch=(0, 2, 2, 2))]
    wiring = custom((2, 4, 1), [*patches, Unit(1, 1, signal=(0,)), Unit(1, 3, signal=(1,))])
    first, second = by_layer(np.arange(8)[None], wiring)
    assert first.tolist() == [[[0, 1], [2, 3]]] and second.tolist() == [[[4, 5, 6, 7]]]


GOOD = np.full(FRAME, 0.5, np.float32)


@pytest.mark.parametrize(
    "frame, label, found",
    [
        (np.zeros((6, 12, 1), np.uint8), None, r"frame: found shape \(1, 6, 12, 1\), expected \(6, 12, 3\)"),
        (np.zeros((6, 12), np.uint8), None, r"frame: found shape \(6, 12\), .* frame\[\.\.\., None\]"),
        (np.zeros((8, 9, 3), "u1"), None, r"PIL\.Image\.fromarray\(frame\)\.resize\(\(12, 6\)"),
        ([[1, 2], [3]], None, "frame: found list that is no array"),
        (np.zeros((2, *FRAME), np.uint8), None, r"frame: found shape \(2, 6, 12, 3\)"),
        (changed(GOOD, (1, 2, 0), np.nan), None, "frame: found numbers from nan"),
        (changed(GOOD, (1, 2, 0), 1.01), None, "frame: found numbers from 0.5 to 1.0"),
        (GOOD, np.zeros(3), "label: .*expected"),
        (GOOD, [np.nan, 0, 1, 1], r"label\[0\]: found NaN"),
        (GOOD, [1, 2, -3, 3], r"label: found the box \[1.0, 2.0, -3.0, 3.0\], expected a width and height"),
        (GOOD, [np.full((6, 12), 7.0)], "label: found numbers from 7.0 to 7.0, expected heatmaps in 0..1"),
        (GOOD, np.array([np.nan, 0, 1, 1]), r"label\[0\]: found NaN"),
        (GOOD, [np.zeros((5, 5))], r"label: found heatmaps \[\(5, 5\)\], expected \[\(6, 12\)\]"),
    ],
)
def test_a_bad_frame_or_label_changes_nothing(frame, label, found):
    model = PVM(TINY)
    walk(model, Scene(2))
    before = bytes_of(model)
    with pytest.raises(ValueError, match=found):
        model.step(frame, label)
    assert bytes_of(model) == before
    walk(model, Scene(3))


def weights_by_layer(model):
    first = model.layout.w_at[model.layout.layer_at[:-1]]
    ends = np.searchsorted(model.wiring.layer, np.arange(1, 3))
    return [part.copy() for part in np.split(model.fetch()["weights"], first[ends])]


def test_a_layer_rests_from_the_step_on_that_its_schedule_says():
    model, feed = PVM(dataclasses.replace(BLIND, schedule=((0, None, 0.05, 0.3), (3, 1, 0.0, 0.0)))), Scene(12)
    walk(model, feed, 3)
    assert [rates.tolist() for rates in model.rates] == [[0.05, 0, 0.05], [0.3, 0, 0.3]]
    before = weights_by_layer(model)
    walk(model, feed, 5)
    after = weights_by_layer(model)
    assert [np.array_equal(one, other) for one, other in zip(before, after, strict=True)] == [False, True, False]


def test_streams_share_the_weights_and_nothing_else():
    feed = Scene(6, 2)
    model, twins = PVM(BLIND, streams=2), PVM(BLIND, streams=2)
    for tick in range(6):
        seen = model.step(feed[tick].image)
        same = twins.step(np.repeat(feed[tick].image[:1], 2, 0))
        assert seen.prediction.shape == (2, *FRAME)
        assert [part.shape for part in seen.hidden] == [(2, 12, 5), (2, 4, 4), (2, 1, 7)]
        assert np.array_equal(same.prediction[0], same.prediction[1])
    assert not np.array_equal(seen.prediction[0], seen.prediction[1])
    read = PVM(TINY, streams=2).step(feed[0].image, list(feed[0].box))
    assert read.heatmaps[0].shape == (2, *FRAME[:2]) and read.heatmap.shape == (2, *FRAME[:2])
    with pytest.raises(ValueError, match="streams: found 17"):
        PVM(TINY, streams=17)
    with pytest.raises(ValueError, match="label: found 1 labels, expected 2"):
        PVM(TINY, streams=2).step(feed[0].image, [feed[0].box[0]])


def test_the_error_falls_and_the_readouts_learn_the_box():
    class Resting(Scene):
        def __getitem__(self, tick):
            return super().__getitem__(5)

    wanted = np.zeros(FRAME[:2])
    wanted[1:3, 5:8] = 1
    seen = list(PVM(TINY).run(Resting(300)))
    misses = [abs(one.heatmap - wanted).mean() for one in seen]
    assert misses[0] > 0.3
    assert misses[-1] < 0.05
    assert seen[-1].error[0] < 0.2 * seen[2].error[0]


def test_in_float64_it_is_the_same_model_more_precisely(tmp_path):
    single, double, feed = PVM(BLIND), PVM(BLIND, dtype=np.float64), Scene(8)
    ours, theirs = walk(single, feed), walk(double, feed)
    assert theirs[-1].prediction.dtype == double.fetch()["weights"].dtype == np.float64
    np.testing.assert_allclose(ours[-1].prediction, theirs[-1].prediction, rtol=0, atol=1e-5)
    assert not np.array_equal(ours[-1].prediction, theirs[-1].prediction)
    double.save(tmp_path)
    assert PVM.load(tmp_path)[0].dtype == np.float64
    with pytest.raises(ValueError, match="dtype: found float16"):
        PVM(TINY, dtype=np.float16)


FRAMES = np.random.default_rng(0).integers(0, 256, (7, *FRAME)).astype(np.uint8)
BOXES = [np.array([x, 1, 4, 3], np.float32) for x in range(len(FRAMES))]


class Unlisted:
    """A sequence by its length and items alone, as readers of videos are; it raises no IndexError at its end."""

    def __len__(self):
        return len(FRAMES)

    def __getitem__(self, number):
        return FRAMES[number % len(FRAMES)]


def ended(model, frames):
    """What all that was seen came to."""
    return outcome(model, list(model.run(frames)))


def stepped(frames, labels=None):
    model = PVM(TINY)
    return outcome(model, [model.step(frame, labels and labels[at]) for at, frame in enumerate(frames)])


def outcome(model, seen):
    """The bytes of the weights, readouts' included, and of the last prediction; how many frames there were."""
    state = model.fetch()
    weights = [state[name].tobytes() for name in ("weights", "readout.weights")]
    return [*weights, seen[-1].prediction.tobytes(), len(seen)]


def overwritten():
    """The same array for every frame."""
    image = np.empty(FRAME, np.uint8)
    for frame in FRAMES:
        image[:] = frame
        yield image


SEVERAL = [FRAMES, list(FRAMES), (frame for frame in FRAMES), Unlisted(), overwritten()]


@pytest.mark.parametrize("frames", SEVERAL, ids=type)
def test_any_iterable_of_frames_is_stepped_through(frames):
    assert ended(PVM(TINY), frames) == stepped(list(FRAMES))


def test_pairs_bring_labels():
    assert ended(PVM(TINY), zip(FRAMES, BOXES, strict=True)) == stepped(FRAMES, BOXES)
    assert ended(PVM(TINY), (Frame(*pair) for pair in zip(FRAMES, BOXES, strict=True))) == stepped(FRAMES, BOXES)
    unlabelled = stepped(FRAMES)[1]
    assert stepped(FRAMES, BOXES)[1] != unlabelled == PVM(TINY).fetch()["readout.weights"].tobytes()


def test_an_iterable_goes_on_and_a_feed_begins_where_the_model_stands():
    model = PVM(TINY)
    assert [seen.tick for seen in model.run(iter(FRAMES[:3]))] == [0, 1, 2]
    assert [seen.tick for seen in model.run(FRAMES[:2])] == [3, 4]
    assert [seen.tick for seen in model.run(Frames([synthetic.Scene(FRAME)], 7))] == [5, 6]
    assert list(model.run([])) == [] and model.tick == 7


def test_what_gives_no_frames_is_refused_and_changes_nothing():
    model = PVM(TINY)
    for frames, found in ((5, "frames: found int"), (None, "frames: found NoneType"), ([None], "frame: found")):
        with pytest.raises(ValueError, match=found):
            list(model.run(frames))
    with pytest.raises(ValueError, match="frame: found shape"):
        list(model.run(FRAMES[0]))
    assert ended(model, FRAMES) == stepped(list(FRAMES))


def test_pictures_of_pillow_and_nested_lists_are_frames():
    from PIL import Image

    def last(frame):
        return PVM(BLIND).step(frame).prediction.tobytes()

    assert last(Image.fromarray(FRAMES[0])) == last(FRAMES[0])
    halves = np.full(FRAME, 0.5)
    assert last(halves.tolist()) == last(halves)


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


def test_a_run_allocates_nothing_that_lasts():
    """Beyond the small arrays of what is seen, memory does not rise, not even for a moment, once the run is warm."""
    config = dataclasses.replace(TINY, grids=((6, 8), (3, 4), (1, 1)), hidden=(24,), block=(10, 10))
    frame = np.zeros((1, *config.frame), np.uint8)
    batch = SimpleNamespace(image=frame, box=np.zeros((1, 4), np.float32), labelled=np.zeros(1, bool))
    feed = type("Still", (), {"streams": 1, "__len__": lambda self: 40, "__getitem__": lambda self, tick: batch})()
    model = PVM(config)
    ticks = model.run(feed, every=1000)
    risen = rise(ticks)
    large = [array for name, array in model.fetch().items() if name.startswith(("tape", "signals", "world"))]
    assert risen < min(array.nbytes for array in large), f"{risen} bytes"


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
    assert model.tick == 4 and np.array_equal(model.prediction(), whole.prediction())


def test_a_freeze_within_a_run_begins_with_the_next_frame_that_is_filled_in_for_units_and_readouts_alike():
    model, stepped, feed = PVM(TINY), PVM(TINY), Scene(12)
    for result in model.run(feed):
        if result.tick == 4:
            model.frozen = True
    for tick in range(len(feed)):
        stepped.frozen = tick > 5  # the frame of tick 5 was filled in while tick 4 was under way
        walk(stepped, feed, tick + 1)
    assert bytes_of(model) == bytes_of(stepped)


PATCHES = Unit(0, 3, patch=(0, 0, 3, 4), context=(1, 2)), Unit(0, 5, patch=(2, 1, 2, 4), context=(0,))
OWN = custom((4, 5, 2), [*PATCHES, Unit(1, 2, signal=(0, 1), context=(2,))])


def test_another_kind_and_a_number_that_cannot_be_are_refused(tmp_path):
    checkpoint.save(tmp_path / "engine", {"x": np.zeros(3, np.float32)}, {"engine": {}, "facts": {}})
    with pytest.raises(ValueError, match="found a checkpoint of another kind, expected one of a Predictive Vision"):
        PVM.load(tmp_path / "engine")
    model = PVM(BLIND)
    model.tick = -5
    model.save(tmp_path / "pvm")
    with pytest.raises(ValueError, match="step: found -5"):
        PVM.load(tmp_path / "pvm")


@pytest.mark.parametrize("streams", [1, 2])
def test_a_saved_model_goes_on_with_the_same_bytes(tmp_path, streams):
    config = TINY if streams == 1 else BLIND
    model, feed = PVM(config, streams=streams, seed=3), Scene(17, streams)
    walk(model, feed, 7)
    model.save(tmp_path, {"note": "mine"})
    expected = walk(model, feed)
    loaded, facts = PVM.load(tmp_path)
    assert facts == {"note": "mine"}
    assert (loaded.config, loaded.streams, loaded.tick) == (config, streams, 7)
    assert_same(list(loaded.run(feed)), expected)
    assert bytes_of(loaded) == bytes_of(model)


def test_a_wiring_made_by_hand_is_saved_and_loaded(tmp_path):
    model = PVM(dataclasses.replace(BLIND, grids=((2, 1), (1, 1)), hidden=(3, 2)), wiring=OWN)
    frames = np.random.default_rng(0).random((9, 4, 5, 2)).astype(np.float32)
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
