import pytest

from hybrid.feeds.video.resize import region


@pytest.mark.parametrize(
    "size, shape, expected",
    [
        ((640, 272), (60, 60, 3), (184, 0, 456, 272)),
        ((100, 300), (50, 100, 3), (0, 125, 100, 175)),
        ((10, 10), (5, 5, 1), (0, 0, 10, 10)),
    ],
)
def test_regions(size, shape, expected):
    assert region(size, shape, crop=True) == expected
    assert region(size, shape, crop=False) == (0, 0, *size)
