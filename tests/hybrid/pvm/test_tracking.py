import json

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hybrid.pvm import tracking
from hybrid.pvm.tracking import Centre, Null, Track

IMAGE = np.zeros((50, 100, 3), np.float32)
ABSENT = (0, 0, 0, 0)


def track(truth, found, size=(100, 50)) -> Track:
    truth, found = (np.array(boxes, np.float32).reshape(-1, 4) for boxes in (truth, found))
    return Track(truth, found, np.tile(np.array(size), (len(truth), 1)))


class Scripted:
    """Says what it is told to, and notes what it is shown."""

    def __init__(self, *boxes):
        self.boxes, self.primed, self.shown = list(boxes), [], []

    def prime(self, image, box):
        self.primed.append((int(image[0, 0, 0]), box.tolist()))

    def track(self, image):
        self.shown.append(int(image[0, 0, 0]))
        return np.array(self.boxes.pop(0))


def video(*labels):
    """Frames whose pixels are their number."""
    return [(IMAGE + at, None if one is None else np.array(one)) for at, one in enumerate(labels)]


def test_overlap_by_hand():
    a = np.array([(0, 0, 4, 2), (0, 0, 4, 2), (0, 0, 4, 2), ABSENT, (1, 1, 3, 3)], np.float32)
    b = np.array([(2, 1, 4, 2), (4, 0, 4, 2), ABSENT, ABSENT, (2, 2, 1, 1)], np.float32)
    expected = [2 / (8 + 8 - 2 + 1e-5), 0, 0, 0, 1 / (9 + 1e-5)]
    np.testing.assert_array_equal(tracking.overlap(a, b), expected)
    np.testing.assert_array_equal(tracking.overlap(b, a), expected)


def test_scores_by_hand():
    target = (40, 20, 10, 10)
    scores = tracking.score(
        track(
            [target, target, target, target, ABSENT, ABSENT],
            [target, (43, 24, 10, 10), (60, 20, 10, 10), ABSENT, ABSENT, target],
        )
    )
    assert scores[:5] == (6, 3, 1, 1, 1)
    # Overlaps 1, 42 / 158 = .266, 0 and 0; 26 / 99 = .2626 and 27 / 99 = .2727
    assert scores.success == pytest.approx((27 * 0.5 + 72 * 0.25) / 100) and scores.overlap == 0.25
    assert scores.centre == 0.5  # x in widths of 100, y in heights of 50: 0, hypot(.03, .08) = .0854, .2; one missed
    assert (
        scores.accuracy == 0.5
    )  # halves of the target's size: 0, 8 / 10, 40 / 10; missed, both absent, found where none is
    assert scores.undefined == ""


whole = st.integers(-20, 20).map(float)
extent = st.integers(0, 20).map(float)
box = st.tuples(whole, whole, extent, extent)
frames = st.lists(st.tuples(box, box), min_size=1, max_size=8)


@given(frames)
def test_figures_are_those_of_a_plain_count(pairs):
    both = track(*zip(*pairs, strict=True))
    scores = tracking.score(both)
    overlaps = tracking.overlap(both.truth, both.found)
    targets = sum(w > 0 and h > 0 for (_, _, w, h), _ in pairs)
    if targets:
        plain = [sum(one > at for one in overlaps) / targets for at in np.linspace(0, 1, 100)]
        assert scores.success == pytest.approx(np.mean(plain), rel=1e-12)
    right = 0
    for (x, y, w, h), (u, v, s, t) in pairs:
        there, said = w > 0 and h > 0, s > 0 and t > 0
        near = there and said and abs(u + s / 2 - x - w / 2) <= w / 2 and abs(v + t / 2 - y - h / 2) <= h / 2
        right += near or (not there and not said)
    assert scores.accuracy == right / len(pairs)


def test_no_frame_has_a_target():
    scores = tracking.score(track([ABSENT, ABSENT], [ABSENT, (1, 1, 2, 2)]))
    assert scores[:5] == (2, 0, 1, 1, 0)
    assert scores.accuracy == 0.5 and np.isnan([scores.success, scores.overlap, scores.centre]).all()
    assert scores.undefined == "no frame has a target: precision and success are undefined"


def test_no_frame_is_labelled():
    tracks = tracking.follow({"null": Null()}, video(None, None))
    scores = tracking.score(tracks["null"])
    assert scores.frames == 0 and np.isnan(scores[5:]).all()
    assert "no frame is labelled" in scores.undefined
    assert tracks["null"].found.shape == (0, 4)


@pytest.mark.parametrize("truth", [[ABSENT], [(0, 0, 2, 2)], []])
def test_the_dictionary_is_json(truth):
    found = json.loads(json.dumps(tracking.score(track(truth, truth)).as_dict(), allow_nan=False))
    assert found["frames"] == len(truth)
    assert (found["success"] is None) == bool(found["undefined"])


def test_trackers_are_primed_by_the_first_target_and_see_all_frames_from_there():
    says = [(0, 0, 1, 1), (0, 0, 2, 2), (0, 0, 3, 3)]
    one = Scripted(*says)
    label = (5, 6, 7, 8)
    found = tracking.follow({"one": one}, iter(video(ABSENT, None, label, None, ABSENT)))["one"]
    assert one.primed == [(2, list(label))]
    assert one.shown == [2, 3, 4]
    assert found.truth.tolist() == [list(ABSENT), list(label), list(ABSENT)]
    assert found.found.tolist() == [list(ABSENT), list(says[0]), list(says[2])]
    assert found.size.tolist() == [[100, 50]] * 3


def test_baselines():
    trackers = {"null": Null(), "centre": Centre()}
    first, second = ((10, 20, 30, 40), (50, 5, 6, 7)), ((1, 2, 3, 4),)
    for labels in (first, second):  # a tracker starts anew with each video
        tracks = tracking.follow(trackers, video(*labels))
        np.testing.assert_array_equal(tracks["null"].found, [labels[0]] * len(labels))
        np.testing.assert_allclose(tracks["centre"].found, [(40, 20, 20, 10)] * len(labels), rtol=1e-6)


def test_pooled_frames_count_the_same():
    parts = [track([(0, 0, 4, 4)], [ABSENT]), track([(0, 0, 4, 4)] * 3, [(0, 0, 4, 4)] * 3, size=(8, 8))]
    scores = tracking.score(tracking.pool(parts))
    assert (scores.frames, scores.centre) == (4, 0.75)


@pytest.mark.parametrize(
    ("label", "said", "message"),
    [
        ((1, 2, 3), (0, 0, 1, 1), r"label of frame 1: found shape \(3,\), expected \(4,\)"),
        ((1, 2, np.nan, 3), (0, 0, 1, 1), "label of frame 1: found .*nan.*, expected finite numbers"),
        ((1, 2, 3, 4), ((0, 0, 1, 1),), r"box of tracker one, frame 1: found shape \(1, 4\)"),
    ],
)
def test_what_is_no_box_is_refused(label, said, message):
    with pytest.raises(ValueError, match=message):
        tracking.follow({"one": Scripted(said)}, video(None, label))
