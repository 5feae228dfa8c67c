"""`hybrid eval`: figures against a loop written by hand; validation; a model of one stream beside one of several."""

from itertools import pairwise
from types import SimpleNamespace

import av
import numpy as np
import pytest
from PIL import Image

from hybrid.cli import main
from hybrid.feeds.video.clip import Frame
from hybrid.feeds.video.film import Film
from hybrid.feeds.video.open import open_clips
from hybrid.pvm import evaluate, panel
from hybrid.pvm import film as watch
from hybrid.pvm.config import Config
from hybrid.pvm.evaluate import Validation, follow, single
from hybrid.pvm.model import PVM
from tests.hybrid.pvm.tiny import TINY, command
from tests.support.commands import run_json

# Where the first two pictures of a film lie.
FIRST, SECOND = np.s_[52:352, 8:308], np.s_[52:352, 316:616]


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    """A run of the synthetic scene."""
    folder = tmp_path_factory.mktemp("run")
    assert main(command(folder, folder / "run", "--steps", "60")) == 0
    return folder / "run"


def test_figures_are_those_of_a_loop_written_by_hand(capsys, run):
    found = run_json(capsys, "eval", str(run), "--video", "synthetic:4", "--steps", "40")
    model = PVM.load(run / "checkpoint", device="cpu")[0]
    model.frozen = True
    frames = [frame.image / np.float32(255) for frame in open_clips("synthetic:4", model.config.frame)[0].clip][:40]
    seen = [model.step(frame) for frame in frames]
    off = [np.abs(one.prediction - frame).mean() for one, frame in zip(seen, frames[1:], strict=False)]
    still = [np.abs(a - b).mean() for a, b in pairwise(frames)]
    assert found["frames"] == 40 and found["steps_learned"] == 60
    assert found["prediction_error"] == pytest.approx(np.mean(off), rel=1e-5)
    assert found["last_frame_error"] == pytest.approx(np.mean(still), rel=1e-5)
    assert found["prediction_to_last_frame"] == pytest.approx(np.mean(off) / np.mean(still), rel=1e-5)
    assert found["error"] == pytest.approx(np.mean([one.error for one in seen], axis=0), rel=1e-5)


def test_labels_bring_scores_of_the_tracker(capsys, run):
    found = run_json(capsys, "eval", str(run), "--steps", "120")["tracking"]
    assert sum(found[f"{kind}_{which}"] for kind in ("true", "false") for which in ("positives", "negatives")) == 120
    assert main(["eval", str(run), "--steps", "20"]) == 0
    printed = capsys.readouterr().out
    assert "tracking          success 0." in printed and "next frame" in printed


def test_frames_of_several_clips_are_pooled(capsys, run, tmp_path):
    rng = np.random.default_rng(0)
    (tmp_path / "clips").mkdir()
    for name in ("a", "b"):
        with Film(tmp_path / "clips" / f"{name}.mp4", 25) as film:
            for _ in range(6):
                film.write(rng.integers(0, 255, (240, 240, 3)).astype(np.uint8))
        (tmp_path / "clips" / f"{name}.txt").write_text("\n".join(["", *["40,40,100,100"] * 5]))
    found = run_json(capsys, "eval", str(run), "--video", str(tmp_path / "clips"))
    counts = found["tracking"]
    assert counts["true_positives"] + counts["false_negatives"] == 10
    assert counts["true_negatives"] + counts["false_positives"] == 2


def test_a_model_of_streams_is_watched_as_its_first(capsys, tmp_path):
    """It has no readouts, and learns from a video without labels."""
    with Film(tmp_path / "video", 25) as film:
        for frame in np.random.default_rng(0).integers(0, 255, (8, 8, 8, 3)).astype(np.uint8):
            film.write(frame)
    options = ["--steps", "10", "--streams", "3", "--video", str(tmp_path / "video")]
    assert main(command(tmp_path, tmp_path / "run", *options, readout=None)) == 0
    capsys.readouterr()
    found = run_json(capsys, "eval", str(tmp_path / "run"))
    assert found["frames"] == 8 and found["tracking"] is None


def test_boxes_are_compared_in_an_arena_from_the_first_target_on(monkeypatch):
    boxes = [None, (0, 0, 0, 0), (1, 2, 10, 11), (0, 0, 0, 0)]
    frames = [
        Frame(np.zeros((12, 24, 3), np.uint8), None if box is None else np.array(box, np.float32)) for box in boxes
    ]
    watcher = SimpleNamespace(cut=lambda: None, see=lambda image: SimpleNamespace(heatmaps=[0]))
    monkeypatch.setattr(evaluate, "box_in", lambda seen, shape: np.array([1, 2, *shape], np.float32))
    truth, found = evaluate._follow(frames, watcher, None, lambda: None)
    assert truth.tolist() == [[0, 0, 0, 0], [4, 16, 40, 88], [0, 0, 0, 0]]
    assert found.tolist() == [[0, 0, 0, 0], [1, 2, 96, 96], [1, 2, 96, 96]]
    watcher.see = lambda image: SimpleNamespace(heatmaps=[])
    assert [one.shape for one in evaluate._follow(frames, watcher, None, lambda: None)] == [(0, 4), (0, 4)]


def test_watch_writes_a_film_of_all_there_is_to_see(capsys, run):
    assert main(["pvm", "watch", str(run), "--steps", "12"]) == 0
    assert "12 frames -> " in capsys.readouterr().out
    with av.open(str(run / "watch.mp4")) as film:
        frames = [frame.to_ndarray(format="rgb24") for frame in film.decode(video=0)]
    assert len(frames) == 12 and frames[0].shape == (724, 1240, 3)  # 7 pictures in two rows
    assert frames[0].std() > 10
    assert any((a[:32] != b[:32]).any() for a, b in pairwise(frames)), "the title counts frames"


def test_watch_shows_the_labelled_box(run, tmp_path):
    assert main(["pvm", "watch", str(run), "--steps", "12", "--out", str(tmp_path / "film")]) == 0
    pictures = [np.array(Image.open(path)) for path in sorted((tmp_path / "film").iterdir())]
    assert len(pictures) == 12
    labelled = [(picture == panel.LABEL).all(-1).any() for picture in pictures]
    assert any(labelled)


def test_a_dream_shows_the_model_its_own_predictions(run, tmp_path):
    path = tmp_path / "dream"
    assert main(["pvm", "dream", str(run), "--steps", "6", "--out", str(path)]) == 0
    films = [np.array(Image.open(file)) for file in sorted(path.iterdir())]
    assert len(films) == watch.AWAKE + 6 and films[0].shape == (360, 624, 3)  # seen, predicted
    for now, after in pairwise(films[watch.AWAKE - 1 :]):
        assert np.array_equal(now[SECOND], after[FIRST])  # what was predicted is seen next
    assert not np.array_equal(films[0][SECOND], films[1][FIRST])


def refusals(run, folder):
    yield ["eval", str(run), "--video", str(folder / "no.mp4")], "there is no such file"
    yield ["pvm", "watch", str(run), "--out", str(folder / "film.webm")], "expected .mp4"
    yield ["export", str(run), str(folder / "vectors.txt")], "no vectors"
    other = folder / "other"
    other.mkdir()
    (other / "run.json").write_text('{"kind": "words", "text": "book.txt"}')
    yield ["pvm", "watch", str(other)], "found a run of 'words'"
    begun = folder / "begun"
    begun.mkdir()
    (begun / "run.json").write_text('{"kind": "pvm"}')
    yield ["eval", str(begun)], "found no checkpoint"


def test_bad_input_is_one_clear_line_and_exit_code_2(capsys, run, tmp_path):
    for line, message in refusals(run, tmp_path):
        assert main(line) == 2, line
        said = [text for text in capsys.readouterr().err.splitlines() if text.startswith("hybrid: ")]
        assert len(said) == 1 and said[0].startswith("hybrid: error: ") and message in said[0], (line, said)


def test_an_evaluation_says_whether_the_clip_was_learned(capsys, run):
    few = ["eval", str(run), "--steps", "9"]
    assert run_json(capsys, *few)["learned"] is True
    assert run_json(capsys, *few, "--video", "synthetic:4")["learned"] is False
    assert main([*few, "--video", "synthetic:4"]) == 0
    assert "9 frames, which it has not learned" in capsys.readouterr().out


def three_learned(ticks, seed):
    """A model of three streams that has learned noise."""
    model = PVM.from_config(Config.from_fields(TINY), device="cpu", threads=1, streams=3)
    for frame in np.random.default_rng(seed).random((ticks, 3, *model.wiring.frame), np.float32):
        model.step(frame)
    return model


@pytest.mark.parametrize("readouts", [True, False])
def test_it_says_of_a_frame_what_the_first_stream_of_the_other_says(readouts):
    model, frame = three_learned(5, seed=2), np.random.default_rng(3).random((3, 8, 8, 3), np.float32)
    one = single(model, readouts=readouts)
    follow(one, model)
    assert (one.streams, one.tick, one.readouts is not None) == (1, 5, readouts)
    model.frozen = one.frozen = True
    said, expected = one.step(frame[0]), model.step(frame)
    parts = (said.prediction, *said.hidden), (expected.prediction, *expected.hidden)
    for mine, theirs in zip(*parts, strict=True):
        np.testing.assert_allclose(mine, theirs[0], atol=1e-6)  # several streams sum in another order


def test_figures_are_those_of_the_model_frozen_and_it_is_left_as_it_was():
    model = three_learned(12, seed=1)
    before = {name: array.copy() for name, array in model.fetch().items()}
    validation = Validation(model, open_clips("synthetic:5", model.config.frame))
    first = validation.figures(model)
    assert first == validation.figures(model)  # nothing is learned, nothing remembered
    assert model.tick == 12 and all(np.array_equal(before[name], array) for name, array in model.fetch().items())
    assert 0 < first["valid last_frame"] < first["valid prediction"] < 1  # it has learned noise
