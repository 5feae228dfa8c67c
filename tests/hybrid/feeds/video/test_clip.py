from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hybrid.feeds.video.clip import Labels, aspect_of, check_shape, placed, read_boxes


@pytest.mark.parametrize(
    ("shape", "message"),
    [
        ((0, 2, 3), "rows: found 0"),
        ((2, 2, 2), "channels: found 2, expected 1 .grey. or 3"),
        ((2, 2), r"shape: found \(2, 2\), expected \(rows, columns, channels\)"),
        ((2**30, 1, 3), "shape: found frames of 1,073,741,824 x 1, expected at most"),
    ],
)
def test_shapes_refused(shape, message):
    with pytest.raises(ValueError, match=message):
        check_shape(shape)


def test_frames_show_the_aspect_of_the_clip_or_else_that_of_their_shape():
    assert aspect_of(SimpleNamespace(shape=(2, 8, 3))) == 4
    assert aspect_of(SimpleNamespace(shape=(2, 8, 3), aspect=1.5)) == 1.5


@given(
    st.tuples(*[st.integers(1, 500)] * 2),
    st.tuples(*[st.integers(1, 90)] * 2),
    st.tuples(*[st.floats(-50, 500)] * 2, *[st.floats(0, 500)] * 2),
)
def test_a_box_stays_in_the_picture(size, shape, box):
    moved = placed(np.array(box), size, (*shape, 3))
    assert (moved >= 0).all()
    assert (moved[:2] + moved[2:] <= np.array(shape[::-1]) * (1 + 1e-5)).all()
    assert (moved[2:] > 0).all() or not moved.any()


def test_a_box_is_what_it_was_around():
    """A painted rectangle of the original, resized, fills the box that its label becomes."""
    box = np.array([30.0, 20.0, 60.0, 45.0])
    assert placed(box, (120, 90), (30, 60, 3)).tolist() == pytest.approx([15, 20 / 3, 30, 15])


@pytest.mark.parametrize(
    "text, message",
    [
        ("1,1,2,2\n", "boxes: 1 lines, expected 2, a line x,y,w,h for each frame"),
        ("1,1,2,2\n1,1,2\n", "boxes, line 2: found '1,1,2', expected four numbers"),
        ("\n1,1,nan,2\n", "boxes, line 2: found '1,1,nan,2'"),
        ("\n1,1,-2,2\n", "boxes, line 2: the box is -2 by 2, expected a size of at least 0"),
        ("\n8,1,2,2\n", "boxes, line 2: the box 8,1,2,2 lies outside its frame of 8 by 6 pixels"),
        ("\n-2,1,2,2\n", "boxes, line 2: .* lies outside"),
        ("\xff", "boxes: not UTF-8"),
    ],
)
def test_labels_refused(text, message):
    with pytest.raises(ValueError, match=message):
        read_boxes(Labels("boxes", text.encode("latin-1")), [(8, 6)] * 2)


def test_labels_over_an_edge_or_absent():
    text = b"-1,-1,3.5,3\n7;5;9;9\n\n0,0,0,0\n3,3,0,5\n   \n\n\n"
    boxes = read_boxes(Labels("boxes", text), [(8, 6)] * 6)
    assert boxes.tolist() == [[-1, -1, 3.5, 3], [7, 5, 9, 9], *[[0] * 4] * 4]
    assert placed(boxes[0], (8, 6), (6, 8, 3)).tolist() == [0, 0, 2.5, 2]
