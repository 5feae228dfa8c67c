import math
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hybrid.feeds import pairs
from hybrid.feeds.pairs import PairFeed
from hybrid.feeds.text import Corpus
from hybrid.feeds.vocabulary import Vocabulary

LETTERS = "abcdefgh"
VOCABULARY = Vocabulary(LETTERS, range(8, 0, -1))


def word2vec(ids, sentence_at, keep, reach):
    """The loop of word2vec.c: (place of the token, centre word, context words) of every word kept, in order."""
    for begin, end in pairwise(sentence_at):
        places = [place for place in range(begin, end) if keep[place]]
        for at, place in enumerate(places):
            context = []
            for other in range(at - reach[place], at + reach[place] + 1):
                if other != at and 0 <= other < len(places):
                    context.append(int(ids[places[other]]))
            yield place, int(ids[place]), context


@st.composite
def spans(draw):
    lengths = draw(st.lists(st.integers(1, 9), max_size=6))
    n = sum(lengths)
    ids = np.array(draw(st.lists(st.integers(0, 7), min_size=n, max_size=n)), np.int32)
    keep = np.array(draw(st.lists(st.booleans(), min_size=n, max_size=n)), bool)
    reach = np.array(draw(st.lists(st.integers(1, 4), min_size=n, max_size=n)), np.int8)
    return ids, np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64), keep, reach


@given(spans(), st.integers(1, 12))
def test_pairs_are_those_of_the_plain_loop(span, tokens):
    expected = list(word2vec(*span))
    sg = pairs.pairs(*span, tokens, cbow=False)
    assert list(zip(sg.ids, sg.target, strict=True)) == [(c, centre) for _, centre, bag in expected for c in bag]
    for tick, (first, last) in enumerate(pairwise(sg.edges)):
        inside = [bag for place, _, bag in expected if tick * tokens <= place < (tick + 1) * tokens]
        assert last - first == sum(map(len, inside))

    bow = pairs.pairs(*span, tokens, cbow=True)
    bags = [bow.ids[a:b].tolist() for a, b in pairwise(bow.bag_at)]
    assert list(zip(bow.target, bags, strict=True)) == [(centre, bag) for _, centre, bag in expected if bag]
    for tick, (first, last) in enumerate(pairwise(bow.edges)):
        inside = [bag for place, _, bag in expected if tick * tokens <= place < (tick + 1) * tokens]
        assert last - first == sum(map(bool, inside))


def text(seed=0, sentences=200, length=12):
    rng = np.random.default_rng(seed)
    return [[LETTERS[letter] for letter in rng.integers(0, 8, rng.integers(1, length))] for _ in range(sentences)]


def test_a_sample_that_leaves_less_than_a_token_on_average_is_refused():
    """Of a word alone in a text of 4 tokens, x^2 + x of them are kept where the sample is x^2."""
    corpus = Corpus([["a"] * 4], VOCABULARY)
    least = 0.5 * (2**0.5 - 1)  # x for a quarter
    PairFeed(corpus, sample=(1.001 * least) ** 2)
    with pytest.raises(ValueError, match="which leaves none of the 4 tokens"):
        PairFeed(corpus, sample=(0.999 * least) ** 2)


@pytest.mark.parametrize("model", ["skipgram", "cbow"])
@pytest.mark.parametrize("mean_batch", [1, 400])
def test_ticks_together_are_the_plain_loop_over_blocks(monkeypatch, model, mean_batch):
    monkeypatch.setattr(pairs, "BLOCK", 100)  # many blocks, whose ends cut sentences
    corpus = Corpus(text(), VOCABULARY)
    feed = PairFeed(corpus, model=model, window=3, sample=0.1, mean_batch=mean_batch, epochs=2, seed=4)
    span = -(-100 // feed.tokens) * feed.tokens
    expected = []
    for block, first in enumerate(range(0, len(corpus), span)):
        ids = corpus.ids[first : first + span]
        cuts = [0, *(at - first for at in corpus.at if first < at < first + len(ids)), len(ids)]
        for _, centre, context in word2vec(ids, cuts, *feed._draw(1, block, ids)):
            if model == "skipgram":
                expected += [(word, centre) for word in context]
            elif context:
                expected.append((tuple(context), centre))
    found = []
    for batch in map(feed.__getitem__, range(feed.ticks_per_epoch, len(feed))):
        inputs = batch.ids.tolist()
        if model == "cbow":
            inputs = [tuple(inputs[a:b]) for a, b in pairwise(batch.bag_at)]
        found += zip(inputs, batch.target.tolist(), strict=True)
    assert found == expected


def test_draws_have_the_promised_shares():
    corpus = Corpus(text(sentences=3000), VOCABULARY)
    feed = PairFeed(corpus, window=4, sample=0.03)
    keep, reach = feed._draw(0, 0, corpus.ids)
    n = len(corpus)
    # Five standard deviations of a share of n draws
    for value in range(1, 5):
        assert abs(np.mean(reach == value) - 1 / 4) < 5 * math.sqrt(1 / 4 * 3 / 4 / n)
    for id in range(8):
        mine = corpus.ids == id
        expected = pairs.keep_probability(np.bincount(corpus.ids), 0.03)[id]
        assert 0.5 < expected < 1
        assert abs(keep[mine].mean() - expected) < 5 * math.sqrt(1 / 4 / mine.sum())


def test_keep_probability():
    counts = np.array([900, 99, 1])
    plain = [(math.sqrt(f / 0.01) + 1) * 0.01 / f for f in (0.9, 0.099, 0.001)]
    np.testing.assert_allclose(pairs.keep_probability(counts, 0.01), np.minimum(plain, 1), rtol=1e-14)
    np.testing.assert_array_equal(pairs.keep_probability(counts, 0), 1)
    assert np.isfinite(pairs.keep_probability(np.array([2, 0]), 0.01)).all()  # a word that does not occur


@pytest.mark.parametrize(
    "options, message",
    [
        ({"model": "glove"}, "model: found 'glove', expected one of skipgram, cbow"),
        ({"window": 0}, "window: found 0, expected a whole number from 1 to 127"),
        ({"mean_batch": 0}, "mean_batch: found 0"),
        ({"sample": -1e-3}, "sample: found -0.001"),
        ({"sample": 1e-300}, r"sample: found 1e-300, which leaves none of the [\d,]+ tokens"),
    ],
)
def test_bad_arguments(options, message):
    with pytest.raises(ValueError, match=message):
        PairFeed(Corpus(text(), VOCABULARY), **options)
