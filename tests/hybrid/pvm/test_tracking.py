"""Scores of the tracker: by hand and against a plain count."""

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
    assert scores[:4] == (3, 1, 1, 1)
    # Overlaps 1, 42 / 158 = .266, 0 and 0; 26 / 99 = .2626 and 27 / 99 = .2727
    assert scores.success == pytest.approx((27 * 0.5 + 72 * 0.25) / 100)
    assert evaluate.tracking_text(scores._asdict()) == "success 0.315, found 3 of 4, absent 1 of 2"


whole = st.integers(-20, 20).map(float)
extent = st.integers(0, 20).map(float)
box = st.tuples(whole, whole, extent, extent)


@given(st.lists(st.tuples(box, box), min_size=1, max_size=8))
def test_success_is_that_of_a_plain_count(pairs):
    truth, found = (boxes(*one) for one in zip(*pairs, strict=True))
    overlaps = evaluate.overlap(truth, found)
    if targets := sum(w > 0 and h > 0 for (_, _, w, h), _ in pairs):
        plain = [sum(one > at for one in overlaps) / targets for at in np.linspace(0, 1, 100)]
        assert evaluate.score(truth, found).success == pytest.approx(np.mean(plain), rel=1e-12)


def test_success_without_a_target_is_null_in_json():
    scores = evaluate.score(boxes(ABSENT), boxes(ABSENT))._asdict()
    assert json.loads(json.dumps(scores, allow_nan=False))["success"] is None
    assert evaluate.tracking_text(scores) == "no target, found 0 of 0, absent 1 of 1"
