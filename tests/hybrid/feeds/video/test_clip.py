from types import SimpleNamespace

import pytest

from hybrid.feeds.video.clip import aspect_of, check_shape


@pytest.mark.parametrize(
    ("shape", "message"),
    [
        ((0, 2, 3), "rows: found 0"),
        ((2, 0, 3), "columns: found 0"),
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
