"""What is asked of any feed: a batch of a tick, and a note of the tick where the feed fails."""

import numpy as np
import pytest

import hybrid
from hybrid import ratings
from hybrid.feeds import asked
from hybrid.feeds.stream import StreamedLanguageFeed


class Failing:
    def __init__(self, failure):
        self.failure = failure

    def __getitem__(self, tick):
        raise self.failure


@pytest.mark.parametrize("failure", [ValueError("bad line"), OSError("no such file"), KeyboardInterrupt()])
def test_a_feed_that_fails_says_at_which_tick(failure):
    with pytest.raises(type(failure)) as caught:
        asked(Failing(failure), 7)
    assert caught.value is failure and failure.__notes__ == ["in the feed, at tick 7"]


def test_the_end_of_an_iterator_within_a_feed_is_no_end_of_the_run():
    with pytest.raises(RuntimeError, match="the feed raised StopIteration at tick 7"):
        asked(Failing(StopIteration()), 7)


WORDS = hybrid.Corpus(text := [["a", "b", "a"], ["b", "a"]], hybrid.Vocabulary.build(text))
SEEN = ratings.histories(ratings.from_columns([0, 0, 1, 1], [0, 1, 1, 0]))
FEEDS = {
    "ArrayFeed": lambda **given: hybrid.ArrayFeed([0, 1], [1, 0], **given),
    "BasketFeed": lambda **given: hybrid.BasketFeed([[0, 1], [1, 0]], **given),
    "HistoryFeed": lambda **given: hybrid.HistoryFeed(SEEN, **given),
    "IterableFeed": lambda **given: hybrid.IterableFeed([(np.array([0, 1]), np.array([1, 0]))], **given),
    "LanguageFeed": lambda **given: hybrid.LanguageFeed(WORDS, **given),
    "PairFeed": lambda **given: hybrid.PairFeed(WORDS, sample=0, **given),
    "SequenceFeed": lambda **given: hybrid.SequenceFeed(WORDS, length=2, **given),
    "StreamedLanguageFeed": lambda **given: StreamedLanguageFeed(WORDS, **given),
}


@pytest.mark.parametrize("seed", [-1, 1.5, None])
@pytest.mark.parametrize("feed", FEEDS)
def test_a_seed_that_draws_nothing_is_refused_at_once(feed, seed):
    assert FEEDS[feed](seed=3)[0]
    with pytest.raises(ValueError, match=f"seed: found {seed}, expected a whole number of at least 0"):
        FEEDS[feed](seed=seed)
