from types import SimpleNamespace

import numpy as np
import pytest

from hybrid.feeds.video.clip import aspect_of, check_shape, whole_number


@pytest.mark.parametrize("shape", [(1, 1, 1), (2, 5, 3), [np.int64(2), 5, 3]])
def test_shapes_are_rows_columns_and_channels(shape):
    assert check_shape(shape) == tuple(shape)


@pytest.mark.parametrize(
    ("shape", "message"),
    [
        ((0, 2, 3), "rows: found 0"),
        ((2.0, 2, 1), "rows: found 2.0"),
        ((2, 0, 3), "columns: found 0"),
        ((2, 2, 2), "channels: found 2, expected 1 .grey. or 3"),
        ((2, 2, 4), "channels: found 4"),
        ((2, 2), r"shape: found \(2, 2\), expected \(rows, columns, channels\)"),
        ((2, 2, 3, 1), r"shape: found \(2, 2, 3, 1\)"),
        (5, "shape: found 5"),
        ((2**30, 1, 3), "shape: found frames of 1,073,741,824 x 1, expected at most"),
        ((10**300, 2, 1), "shape: found frames of|rows: found"),
    ],
)
def test_shapes_refused(shape, message):
    with pytest.raises(ValueError, match=message):
        check_shape(shape)


def test_frames_show_the_aspect_of_the_clip_or_else_that_of_their_shape():
    assert aspect_of(SimpleNamespace(shape=(2, 8, 3))) == 4
    assert aspect_of(SimpleNamespace(shape=(2, 8, 3), aspect=1.5)) == 1.5


@pytest.mark.parametrize(("detail", "number"), [("", 0), ("0", 0), ("17", 17)])
def test_numbers_behind_a_colon(detail, number):
    assert whole_number("synthetic", detail) == number
