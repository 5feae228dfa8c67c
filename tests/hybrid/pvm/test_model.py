import concurrent.futures
import dataclasses
import json

import numpy as np
import pytest

from hybrid import machine
from hybrid.pvm.model import PVM
from hybrid.pvm.sizes import fewest
from tests.support.small_pvm import BLIND, FRAME, TINY, Scene, bytes_of, walk


def test_made_of_a_configuration_a_name_or_a_file(tmp_path):
    (tmp_path / "mine.json").write_text(TINY.to_json())
    from_file = PVM.from_config(tmp_path / "mine.json", seed=4)
    assert bytes_of(from_file) == bytes_of(PVM.from_config(TINY, seed=4))
    assert bytes_of(from_file) != bytes_of(PVM(TINY, seed=5))
    with pytest.raises(ValueError, match=r"'smal'.*small"):
        PVM.from_config("smal")
    classic = tmp_path / "classic.json"
    classic.write_text(json.dumps({"layer_shapes": ["3", "2"], "input_block_size": "2", "hidden_block_size": "2"}))
    assert PVM.from_config(classic, streams=2).config.wiring == "cuda"


def test_a_model_whose_momentum_has_no_room_is_refused(monkeypatch):
    memory = []
    monkeypatch.setattr(machine, "memory", lambda: memory[0])
    least = 4 * fewest(BLIND)
    for momentum, copies in ((0.0, 1), (0.5, 2)):
        config = dataclasses.replace(BLIND, schedule=((0, None, 0.05, momentum),))
        memory[:] = [copies * least]
        PVM(config)
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
    assert model.step_number == 3
    blind = PVM(BLIND)
    seen = walk(blind, Scene(1))[0]
    assert seen.heatmaps == [] and seen.heatmap is None
    assert blind.size[1] == 0


def test_the_error_is_the_mean_of_what_was_predicted_two_frames_ago():
    model, feed = PVM(BLIND), Scene(6)
    walk(model, feed, 5)
    before = {name: array.copy() for name, array in model.fetch().items()}
    seen = walk(model, feed)[0]
    arrays, layout = model.fetch(), model.layout
    for layer, error in enumerate(seen.error):
        parts = []
        for u in np.flatnonzero(model.wiring.layer == layer):
            part = slice(layout.signal_at[u], layout.signal_at[u + 1])
            target = np.concatenate([arrays[f"signals_{k}"][0, part] for k in (5 % 2, 4 % 2)])
            parts.append(target - before["tape_0"][0, layout.predicted_at[u] :][: target.size])
        assert error == pytest.approx(abs(np.concatenate(parts)).mean(), rel=1e-5)


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


def changed(value):
    frame = np.full(FRAME, 0.5, np.float32)
    frame[1, 2, 0] = value
    return frame


GOOD = np.full(FRAME, 0.5, np.float32)


@pytest.mark.parametrize(
    "frame, label, found",
    [
        (np.zeros((6, 12, 1), np.uint8), None, r"frame: found shape \(1, 6, 12, 1\), .* give it 3 channels"),
        (np.zeros((6, 12), np.uint8), None, r"frame: found shape \(6, 12\), .* put the channels last"),
        (
            np.zeros((8, 9, 3), np.uint8),
            None,
            r"resize it: np\.asarray\(PIL\.Image\.fromarray\(frame\)\.resize\(\(12, 6\)",
        ),
        ([[1, 2], [3]], None, "frame: found list that is no array"),
        (np.zeros((2, *FRAME), np.uint8), None, r"frame: found shape \(2, 6, 12, 3\)"),
        (changed(np.nan), None, "frame: found numbers from nan"),
        (changed(1.01), None, "frame: found numbers from 0.5 to 1.0"),
        (GOOD, np.zeros(3), "label: .*expected"),
        (GOOD, [np.nan, 0, 1, 1], r"label: found heatmaps \[\(\), \(\), \(\), \(\)\]"),
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


def test_frozen_it_predicts_and_learns_nothing():
    model, feed = PVM(TINY), Scene(12)
    walk(model, feed, 4)
    model.frozen = True
    names = ("weights", "velocity", "readout.weights", "readout.velocity")
    before = {name: array.copy() for name, array in model.fetch().items()}
    seen = walk(model, feed, 8)
    after = model.fetch()
    assert all(after[name].tobytes() == before[name].tobytes() for name in names)
    assert not np.array_equal(seen[0].prediction, seen[-1].prediction)
    model.frozen = False
    walk(model, feed)
    assert all(model.fetch()[name].tobytes() != before[name].tobytes() for name in names)


def weights_by_layer(model):
    first = model.layout.w_at[model.layout.layer_at[:-1]]
    ends = np.searchsorted(model.wiring.layer, np.arange(1, 3))
    return [part.copy() for part in np.split(model.fetch()["weights"], first[ends])]


def test_a_rate_set_by_hand_holds_from_the_next_tick_on():
    model, feed = PVM(BLIND), Scene(12)
    walk(model, feed, 3)
    model.set_rate(0, layer=1, momentum=0)
    assert model.rates[0].tolist() == [0.05, 0, 0.05]
    assert model.rates[1].tolist() == [0.3, 0, 0.3]
    before = weights_by_layer(model)
    walk(model, feed, 5)
    after = weights_by_layer(model)
    assert [np.array_equal(one, other) for one, other in zip(before, after, strict=True)] == [False, True, False]
    model.set_rate(0.25)
    assert model.rates[0].tolist() == [0.25] * 3
    still = PVM(dataclasses.replace(BLIND, schedule=((0, None, 0.05, 0.0),)))
    with pytest.raises(ValueError, match=r"momentum: found 0\.5"):
        still.set_rate(0.1, momentum=0.5)
    with pytest.raises(ValueError, match="layer"):
        model.set_rate(0.1, layer=3)


def test_a_rate_set_by_hand_leaves_what_is_still_to_come():
    model = PVM(dataclasses.replace(BLIND, schedule=((0, None, 0.05, 0.3), (3, None, 0.2, 0.1))))
    walk(model, Scene(2))
    model.set_rate(0.4, layer=1)
    assert [rates.tolist() for rates in model.rates] == [[0.05, 0.4, 0.05], [0.3] * 3]
    walk(model, Scene(3))
    assert [rates.tolist() for rates in model.rates] == [[0.2] * 3, [0.1] * 3]


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
    for streams in (0, 17):
        with pytest.raises(ValueError, match=f"streams: found {streams}"):
            PVM(TINY, streams=streams)
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


def test_a_second_thread_is_refused_and_leaves_the_model_as_it_was():
    model, whole, feed, raised = PVM(BLIND), PVM(BLIND), Scene(6), []
    stages = model.pipeline.stages()

    def watched(*arguments):
        with concurrent.futures.ThreadPoolExecutor(1) as pool:
            for call in (lambda: model.step(feed[0].image), lambda: next(model.run(feed))):
                raised.append(pool.submit(call).exception())
        return stages[0].work(*arguments)

    model.pipeline.stages = lambda: [stages[0]._replace(work=watched), *stages[1:]]
    model.step(feed[0].image)
    model.pipeline.stages = lambda: stages
    whole.step(feed[0].image)
    assert [type(failure) for failure in raised] == [RuntimeError] * 2
    assert all("pvm: found a call while another thread's is under way" in str(failure) for failure in raised)
    assert model.torn is None and np.array_equal(walk(model, feed)[-1].prediction, walk(whole, feed)[-1].prediction)
