"""What every feed promises."""

import json

import numpy as np
import pytest

from hybrid.feeds import Batch, Feed


def check_feed(make) -> None:
    """`make()` builds the feed: the same batches in any order of asking, and from a second one; sizes as announced."""
    feed, again = make(), make()
    batches = [feed[tick] for tick in range(len(feed))]
    for tick in np.random.default_rng(0).permutation(len(feed)):
        assert_equal(again[int(tick)], batches[tick])
    assert len(list(feed)) == len(feed) == feed.epochs * feed.ticks_per_epoch
    assert json.loads(json.dumps(feed.describe())) == again.describe()
    for batch in batches:
        check_batch(feed, batch)
    for tick in (-1, len(feed)):
        with pytest.raises(IndexError, match=f"tick: found {tick}, expected 0 to {len(feed) - 1}"):
            feed[tick]


def check_batch(feed: Feed, batch: Batch) -> None:
    assert batch.ids.dtype == batch.target.dtype == np.int32
    assert batch.ids.ndim == batch.target.ndim == 1
    assert len(batch.target) <= feed.batch
    assert len(batch.ids) <= feed.most_ids
    assert ((batch.ids >= 0) & (batch.ids < feed.rows)).all()
    assert ((batch.target >= 0) & (batch.target < feed.classes)).all()
    assert feed.counts.shape == (feed.classes,)
    assert feed.counts.dtype == np.int64
    if batch.bag_at is None:
        assert not len(batch.target) or len(batch.ids) % len(batch.target) == 0
    else:
        assert batch.bag_at.dtype == np.int64
        assert (batch.bag_at[0], batch.bag_at[-1]) == (0, len(batch.ids))
        assert batch.bag_at.shape == (len(batch.target) + 1,)
        assert (np.diff(batch.bag_at) > 0).all()


def assert_equal(one: Batch, other: Batch) -> None:
    for a, b in zip(one, other, strict=True):
        assert (a is None) == (b is None)
        np.testing.assert_array_equal(a, b)
