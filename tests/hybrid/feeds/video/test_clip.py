import pytest

from hybrid.feeds.video.clip import check_shape


@pytest.mark.parametrize(
    "shape", [(0, 2, 3), (2, 2, 2), (2, 2, 4), (2, 2), 5, (2.0, 2, 1), (2**30, 1, 3), (10**300, 2, 1)]
)
def test_shapes_refused(shape):
    with pytest.raises(ValueError, match=r"shape: found|rows: found|channels: found"):
        check_shape(shape)
