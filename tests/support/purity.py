"""What every feed promises."""

import inspect
import json

import numpy as np
import pytest

from hybrid.feeds import Batch, Feed


def check_order(make) -> list:
    """`make()` builds the feed: the same batches in any order of asking, and from a second one. Returns them."""
    feed, again = make(), make()
    batches = [feed[tick] for tick in range(len(feed))]
    for tick in np.random.default_rng(0).permutation(len(feed)):
        assert_equal(again[int(tick)], batches[tick])
    assert json.loads(json.dumps(feed.describe())) == again.describe()
    return batches


def check_feed(make) -> None:
    """Sizes are as announced, too, and options given by name alone."""
    feed, batches = make(), check_order(make)
    for given in inspect.signature(type(feed)).parameters.values():
        assert given.kind != given.POSITIONAL_ONLY, f"{given}: cannot be given by name"
        assert given.default is given.empty or given.kind == given.KEYWORD_ONLY, f"{given}: can be given without a name"
    assert len(list(feed)) == len(feed) == feed.epochs * feed.ticks_per_epoch
    for batch in batches:
        check_batch(feed, batch)
    for tick in (-1, len(feed)):
        with pytest.raises(IndexError, match=f"tick: found {tick}, expected 0 to {len(feed) - 1}"):
            feed[tick]


def check_batch(feed: Feed, batch: Batch) -> None:
    assert batch.target.dtype == np.int32 and batch.target.ndim == 1
    assert batch.examples <= feed.batch
    assert ((batch.target >= 0) & (batch.target < feed.classes)).all()
    assert feed.counts.shape == (feed.classes,)
    assert feed.counts.dtype == np.int64
    if batch.target_at is not None:
        check_places(batch.target_at, batch.examples, len(batch.target))
        assert len(batch.target) <= feed.most_targets
    if batch.weight is not None:
        assert batch.weight.dtype == np.float32 and batch.weight.shape == (batch.examples,)
    if batch.x is None:
        check_ids(feed, batch)
    else:
        assert batch.ids is batch.bag_at is batch.values is None
        assert batch.x.dtype == np.float32 and batch.x.shape == (batch.examples, feed.width)


def check_ids(feed: Feed, batch: Batch) -> None:
    assert batch.ids.dtype == np.int32 and batch.ids.ndim == 1
    assert len(batch.ids) <= feed.most_ids
    assert ((batch.ids >= 0) & (batch.ids < feed.rows)).all()
    if batch.values is not None:
        assert batch.values.dtype == np.float32 and batch.values.shape == batch.ids.shape
    if batch.bag_at is None:
        assert not batch.examples or len(batch.ids) % batch.examples == 0
    else:
        check_places(batch.bag_at, batch.examples, len(batch.ids))
        assert (np.diff(batch.bag_at) > 0).all()


def check_places(at: np.ndarray, parts: int, end: int) -> None:
    assert at.dtype == np.int64 and at.shape == (parts + 1,)
    assert (at[0], at[-1]) == (0, end) and (np.diff(at) >= 0).all()


def assert_equal(one: Batch, other: Batch) -> None:
    for a, b in zip(one, other, strict=True):
        assert (a is None) == (b is None)
        np.testing.assert_array_equal(a, b)
