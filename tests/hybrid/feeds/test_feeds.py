"""What every feed promises: a batch that is a function of the tick, and a seed that draws something."""

import itertools

import numpy as np
import pytest

import hybrid
from hybrid import ratings
from tests.support.purity import check_feed

RNG = np.random.default_rng(0)
SENTENCES = [["abcdefgh"[letter] for letter in RNG.integers(0, 8, size)] for size in RNG.integers(1, 12, 40)]
WORDS = hybrid.Corpus(SENTENCES, hybrid.Vocabulary.build(SENTENCES))
USER, ITEM = np.repeat(np.arange(9), 6), RNG.integers(0, 7, 54)
SEEN = ratings.histories(ratings.from_columns(USER, ITEM, weight=RNG.random(54)))
PAIRS = [(ITEM[at : at + 5].astype(np.int32), USER[at : at + 5].astype(np.int32)) for at in range(0, 54, 5)]
FEEDS = {
    "ArrayFeed": lambda **given: hybrid.ArrayFeed(ITEM, USER, batch=5, **given),
    "BasketFeed": lambda **given: hybrid.BasketFeed([[0, 1, 2], [3], [], [5, 1, 4, 0, 2]], length=2, batch=3, **given),
    "HistoryFeed": lambda **given: hybrid.HistoryFeed(SEEN, length=3, batch=5, **given),
    "LanguageFeed": lambda **given: hybrid.LanguageFeed(WORDS, context=3, batch=7, **given),
    "SequenceFeed": lambda **given: hybrid.SequenceFeed(SEEN, length=4, windows=2, **given),
    "chunks": lambda **given: hybrid.LanguageFeed(WORDS, context=3, batch=7, chunk=30, **given),
    "IterableFeed": lambda **given: hybrid.IterableFeed(PAIRS, **given),
    "skip-gram": lambda **given: hybrid.PairFeed(WORDS, sample=0.2, mean_batch=50, **given),
    "CBOW": lambda **given: hybrid.PairFeed(WORDS, model="cbow", sample=0.2, mean_batch=50, **given),
}
IN_ORDER = ["ArrayFeed", "HistoryFeed", "LanguageFeed", "SequenceFeed", "chunks"]  # with a seed of None


@pytest.mark.parametrize("feed, seed", [*((feed, None) for feed in IN_ORDER), *((feed, 5) for feed in FEEDS)])
def test_is_a_pure_function_of_the_tick(monkeypatch, feed, seed):
    monkeypatch.setattr("hybrid.feeds.pairs.BLOCK", 60)
    check_feed(lambda: FEEDS[feed](epochs=3, seed=seed))


@pytest.mark.parametrize(
    "feed, seed", [*itertools.product(FEEDS, [-1, 1.5]), *((feed, None) for feed in FEEDS if feed not in IN_ORDER)]
)
def test_a_seed_that_draws_nothing_is_refused_at_once(feed, seed):
    with pytest.raises(ValueError, match=f"seed: found {seed}, expected a whole number of at least 0"):
        FEEDS[feed](seed=seed)
