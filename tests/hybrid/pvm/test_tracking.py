"""The tracking benchmark: figures by hand and against a plain count, and its baselines."""

import json

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hybrid.pvm import evaluate

ABSENT = (0, 0, 0, 0)


def boxes(*rows):
    return np.array(rows, np.float32).reshape(-1, 4)


def test_overlap_by_hand():
    a = boxes((0, 0, 4, 2), (0, 0, 4, 2), (0, 0, 4, 2), ABSENT, (1, 1, 3, 3))
    b = boxes((2, 1, 4, 2), (4, 0, 4, 2), ABSENT, ABSENT, (2, 2, 1, 1))
    expected = [2 / (8 + 8 - 2 + 1e-5), 0, 0, 0, 1 / (9 + 1e-5)]
    np.testing.assert_array_equal(evaluate.overlap(a, b), expected)
    np.testing.assert_array_equal(evaluate.overlap(b, a), expected)


def test_scores_by_hand():
    target = (40, 20, 10, 10)
    scores = evaluate.score(
        boxes(target, target, target, target, ABSENT, ABSENT),
        boxes(target, (43, 24, 10, 10), (60, 20, 10, 10), ABSENT, ABSENT, target),
    )
    assert scores[:5] == (6, 3, 1, 1, 1)
    # Overlaps 1, 42 / 158 = .266, 0 and 0; 26 / 99 = .2626 and 27 / 99 = .2727
    assert scores.success == pytest.approx((27 * 0.5 + 72 * 0.25) / 100) and scores.overlap == 0.25
    assert scores.centre == 0.5  # of a frame of 96 x 96: 0, 5 and 20 pixels, and one missed
    assert scores.accuracy == 0.5  # halves of the target's size: 0, .8, 4; missed, both absent, found where none is
    assert scores.undefined == ""


whole = st.integers(-20, 20).map(float)
extent = st.integers(0, 20).map(float)
box = st.tuples(whole, whole, extent, extent)


@given(st.lists(st.tuples(box, box), min_size=1, max_size=8))
def test_figures_are_those_of_a_plain_count(pairs):
    truth, found = (boxes(*one) for one in zip(*pairs, strict=True))
    scores = evaluate.score(truth, found)
    overlaps = evaluate.overlap(truth, found)
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


@pytest.mark.parametrize(
    ("truth", "why"),
    [
        ([ABSENT], "no frame has a target: precision and success are undefined"),
        ([(0, 0, 2, 2)], ""),
        ([], "no frame is labelled: no figure is defined"),
    ],
)
def test_what_is_undefined_is_said_and_null_in_json(truth, why):
    scores = evaluate.score(boxes(*truth), boxes(*truth))
    found = json.loads(json.dumps(scores.as_dict(), allow_nan=False))
    assert (found["frames"], found["undefined"]) == (len(truth), why)
    assert (found["success"] is None) == bool(why) and (found["accuracy"] is None) == (not truth)
    assert why in evaluate.table({"null": scores})


def test_trackers_begin_with_the_first_target():
    label, said = (5, 6, 7, 8), ((1, 1, 1, 1), (2, 2, 2, 2), (3, 3, 3, 3))
    found = evaluate.begun(boxes(ABSENT, label, ABSENT), {"one": boxes(*said)})
    middle = [38.4, 38.4, 19.2, 19.2]
    assert found["one"].tolist() == [list(ABSENT), list(said[1]), list(said[2])]
    assert found["null"].tolist() == [list(ABSENT), list(label), list(label)]
    np.testing.assert_allclose(found["centre"], [ABSENT, middle, middle], rtol=1e-6)
    assert not any(one.any() for one in evaluate.begun(boxes(ABSENT), {"one": boxes(label)}).values())
