import pytest

from hybrid.feeds.video.cache import Kept, Memory, keep
from tests.support.numbered_clip import Numbers


def test_kept_frames_are_decoded_once():
    clip = Numbers(5, 4)
    kept = keep(clip, Memory(4 * 6))
    seen = [[kept[number].image.max() for number in range(4)] for _ in range(3)]
    assert seen == [[5, 6, 7, 8]] * 3
    assert clip.decoded == [0, 1, 2, 3]
    assert kept[1].box is None
    assert kept[0].box.tolist() == [5, 0, 1, 1]
    assert not kept[0].image.flags.writeable
    with pytest.raises(IndexError, match="frame: found 4, expected 0 to 3"):
        kept[4]


def test_clips_share_the_memory_and_are_kept_whole_or_not_at_all():
    memory = Memory(4 * 6 + 5)
    clips = [keep(Numbers(0, length), memory) for length in (5, 4, 1)]
    assert [isinstance(clip, Kept) for clip in clips] == [False, True, False]
