"""What is asked of any feed: a batch of a tick, and a note of the tick where the feed fails."""

import pytest

from hybrid.feeds import asked


class Failing:
    def __init__(self, failure):
        self.failure = failure

    def __getitem__(self, tick):
        raise self.failure


def test_a_batch_of_a_tick_is_the_feeds_own():
    assert asked(["a", "b"], 1) == "b"


@pytest.mark.parametrize("failure", [ValueError("bad line"), OSError("no such file"), KeyboardInterrupt()])
def test_a_feed_that_fails_says_at_which_tick(failure):
    with pytest.raises(type(failure)) as caught:
        asked(Failing(failure), 7)
    assert caught.value is failure and failure.__notes__ == ["in the feed, at tick 7"]


def test_the_end_of_an_iterator_within_a_feed_is_no_end_of_the_run():
    with pytest.raises(RuntimeError, match="the feed raised StopIteration at tick 7"):
        asked(Failing(StopIteration()), 7)
