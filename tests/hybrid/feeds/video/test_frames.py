import numpy as np
import pytest

from hybrid.feeds.video.clips.synthetic import Scene
from hybrid.feeds.video.frames import Frames
from hybrid.feeds.video.open import kept
from tests.support.numbered_clip import Numbers
from tests.support.purity import check_order


def test_streams_go_through_all_clips_again_and_again_with_their_boxes():
    feed = Frames([Numbers(0, 3), Numbers(10, 2)], 7, streams=2)
    first, second = [0, 1, 2, 10, 11, 0, 1], [2, 10, 11, 0, 1, 2, 10]  # stream 1 starts 5 // 2 frames in
    assert [batch.image[:, 0, 0, 0].tolist() for batch in feed] == [
        list(pair) for pair in zip(first, second, strict=True)
    ]
    batch = Frames([Numbers(1, 4)], 4, streams=4)[0]
    assert (batch.image.shape, batch.image.dtype, batch.box.dtype) == ((4, 2, 3, 1), np.uint8, np.float32)
    assert batch.box.tolist() == [[1, 0, 1, 1], [2, 0, 1, 1], [0] * 4, [4, 0, 1, 1]]
    assert batch.labelled.tolist() == [True, True, False, True]


def test_pure_function_of_the_tick():
    check_order(lambda: Frames([*kept([Scene((12, 10, 3), 9)]), Scene((12, 10, 3), 4, seed=1)], 30, streams=3))


@pytest.mark.parametrize(
    "clips, message",
    [
        ([], "clips: found none"),
        ([Numbers(0, 1), Numbers(0, 1, (2, 3, 3))], r"clips\[1\]: found shape \(2, 3, 3\), expected \(2, 3, 1\)"),
    ],
)
def test_refused(clips, message):
    with pytest.raises(ValueError, match=message):
        Frames(clips, 1)
