from hybrid.feeds.video.open import Kept, Memory, keep
from tests.support.numbered_clip import Numbers


def test_clips_share_the_memory_and_are_kept_whole_or_not_at_all():
    memory = Memory(4 * 6 + 5)
    clips = [keep(Numbers(0, length), memory) for length in (5, 4, 1)]
    assert [isinstance(clip, Kept) for clip in clips] == [False, True, False]
