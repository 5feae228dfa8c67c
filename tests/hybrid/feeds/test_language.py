import pytest
from hypothesis import given
from hypothesis import strategies as st

from hybrid.feeds.language import LanguageFeed
from hybrid.feeds.text import Corpus
from hybrid.feeds.vocabulary import Vocabulary
from hybrid.models.language import Options
from tests.support.purity import check_feed

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
    feed = LanguageFeed(corpus, context=context, batch=batch, epochs=2, shuffle=False)
    expected = list(brute_force(sentences, context))
    assert list(examples(feed, range(feed.ticks_per_epoch))) == expected
    assert list(examples(feed, range(len(feed)))) == expected * 2

    shuffled = LanguageFeed(corpus, context=context, batch=batch, epochs=2)
    for epoch in range(2):
        ticks = range(epoch * feed.ticks_per_epoch, (epoch + 1) * feed.ticks_per_epoch)
        assert sorted(examples(shuffled, ticks)) == sorted(expected)


@pytest.mark.parametrize("shuffle", [True, False])
def test_is_a_pure_function_of_the_tick(shuffle):
    corpus = Corpus([list("abc"), list("fed"), list("abcdef") * 3], VOCABULARY)
    check_feed(lambda: LanguageFeed(corpus, context=3, batch=7, epochs=3, seed=5, shuffle=shuffle))


def test_it_is_by_default_that_of_the_command():
    """Of one epoch: what is learned from is gone through as often as its caller asks for."""
    feed = LanguageFeed(Corpus([list("ab")], VOCABULARY))
    assert (feed.context, feed.batch, feed.epochs) == (Options.context, Options.batch, 1)


@pytest.mark.parametrize("name", ["context", "batch", "epochs"])
@pytest.mark.parametrize("value", [0, -1, 1.5, None])
def test_bad_sizes(name, value):
    corpus = Corpus([list("ab")], VOCABULARY)
    with pytest.raises(ValueError, match=f"{name}: found {value}, expected a whole number"):
        LanguageFeed(corpus, **{name: value})
