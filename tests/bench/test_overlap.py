"""What the record of an overlap says of a tick."""

import itertools

import pytest

from bench.step.language import ZipfFeed
from bench.step.overlap import DENSE, SPARSE, facts, make_engine


@pytest.mark.parametrize("overlap", [False, True])
def test_the_timeline_is_of_a_tick_that_is_over(overlap):
    """Of the next one the feed has begun when it is asked."""
    feed = ZipfFeed(500, 64)
    engine = make_engine(feed, 8, 2, 0, overlap, 2)
    assert len(list(itertools.islice(engine.run(feed), 3))) == 3
    timeline = facts(engine)["timeline"]
    assert {one["stage"] for one in timeline} == {*DENSE, *SPARSE}
    assert {one["micro"] for one in timeline if one["stage"] == "readout"} == {0, 1}
    assert min(one["start"] for one in timeline) == 0 and all(one["start"] <= one["end"] for one in timeline)
