import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hybrid.feeds.language import LanguageFeed
from hybrid.feeds.pairs import PairFeed
from hybrid.feeds.stream import stored
from hybrid.feeds.text import Corpus, Text
from hybrid.feeds.vocabulary import Vocabulary
from hybrid.models.language import Options
from tests.support.purity import assert_equal

VOCABULARY = Vocabulary("abcdef", [6, 5, 4, 3, 2, 1])
texts = st.lists(st.lists(st.sampled_from("abcdef"), max_size=6), min_size=1).filter(any)


def brute_force(sentences, context):
    """(context, word) of every word, as words; "<s>" before the first."""
    for sentence in sentences:
        padded = ["<s>"] * context + sentence
        for at in range(len(sentence)):
            yield (*padded[at : at + context], sentence[at])


def examples(feed, ticks):
    words = [*VOCABULARY.words, "<s>"]
    for batch in map(feed.__getitem__, ticks):
        contexts = batch.ids.reshape(len(batch.target), -1)
        for ids, target in zip(contexts, batch.target, strict=True):
            yield tuple(words[id] for id in (*ids, target))


@given(texts, st.integers(1, 4), st.integers(1, 7))
def test_contexts_are_those_of_brute_force(sentences, context, batch):
    corpus = Corpus(sentences, VOCABULARY)
    feed = LanguageFeed(corpus, context=context, batch=batch, epochs=2, seed=None)
    expected = list(brute_force(sentences, context))
    assert list(examples(feed, range(feed.ticks_per_epoch))) == expected
    assert list(examples(feed, range(len(feed)))) == expected * 2

    shuffled = LanguageFeed(corpus, context=context, batch=batch, epochs=2)
    for epoch in range(2):
        ticks = range(epoch * feed.ticks_per_epoch, (epoch + 1) * feed.ticks_per_epoch)
        assert sorted(examples(shuffled, ticks)) == sorted(expected)


def test_it_is_by_default_that_of_the_command():
    """Of one epoch: what is learned from is gone through as often as its caller asks for."""
    feed = LanguageFeed(Corpus([list("ab")], VOCABULARY))
    assert (feed.context, feed.batch, feed.epochs) == (Options.context, Options.batch, 1)


@pytest.mark.parametrize("value", [0, -1, 1.5])
@pytest.mark.parametrize("name", ["context", "batch", "chunk"])
def test_bad_sizes(name, value):
    with pytest.raises(ValueError, match=f"{name}: found {value}, expected a whole number"):
        LanguageFeed(Corpus([list("ab")], VOCABULARY), **{name: value})
    with pytest.raises(ValueError, match="corpus: found list, expected a Corpus"):
        LanguageFeed([1, 2])


@given(texts, st.integers(1, 5), st.integers(1, 9), st.integers(1, 20))
def test_in_chunks_without_a_shuffle_it_is_the_feed_in_memory(sentences, context, batch, chunk):
    corpus = Corpus(sentences, VOCABULARY)
    one = LanguageFeed(corpus, context=context, batch=batch, seed=None)
    other = LanguageFeed(corpus, context=context, batch=batch, chunk=chunk, seed=None)
    assert len(one) == len(other)
    for tick in range(len(one)):
        assert_equal(one[tick], other[tick])


SENTENCES = ["the cat sat on the mat", "the", "end of the cat", "on on on"] * 4


def corpus():
    text = Text(SENTENCES)
    return Corpus(text, Vocabulary.build(text))


def test_every_token_is_a_target_once_an_epoch_within_its_chunk():
    whole = corpus()
    feed = LanguageFeed(whole, batch=5, chunk=18, epochs=2)  # rounded up to 20
    assert feed.chunk == 20 and len(whole) == 56
    per_epoch = [[feed[tick].target for tick in range(at, at + 12)] for at in (0, 12)]
    for batches in per_epoch:
        for chunk in range(3):
            targets = np.concatenate(batches[4 * chunk : 4 * chunk + 4])
            assert sorted(targets) == sorted(whole.ids[20 * chunk : 20 * chunk + 20])
    assert any((one != other).any() for one, other in zip(*per_epoch, strict=True))


def test_a_corpus_in_files_gives_the_same_batches(tmp_path):
    (tmp_path / "text").write_text("\n".join(SENTENCES))
    found = stored(tmp_path / "text", tmp_path / "ids")
    whole, few = corpus(), {"sample": 0.05, "mean_batch": 9}
    for kind, options in ((LanguageFeed, {"chunk": 10}), (LanguageFeed, {}), (PairFeed, few)):
        one, other = (kind(part, epochs=2, **options) for part in (whole, found))
        assert one.describe() == other.describe() and len(one) == len(other)
        for tick in range(len(one)):
            assert_equal(one[tick], other[tick])


def test_descriptions():
    facts = LanguageFeed(corpus(), chunk=1024).describe()
    others = [{"context": 3}, {"chunk": 512}, {"batch": 9}, {"epochs": 2}, {"seed": 1}, {"seed": None}]
    assert all(LanguageFeed(corpus(), **{"chunk": 1024} | other).describe() != facts for other in others)
    assert facts["kind"] != LanguageFeed(corpus()).describe()["kind"]
