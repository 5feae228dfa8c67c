import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hybrid import Corpus, LanguageFeed, PairFeed, Text, Vocabulary
from hybrid.feeds.stream import StreamedLanguageFeed, stored
from tests.support.purity import assert_equal

SENTENCES = ["the cat sat on the mat", "the", "end of the cat", "on on on"] * 4


def corpus(sentences=SENTENCES):
    text = Text(sentences)
    return Corpus(text, Vocabulary.build(text))


sentences = st.lists(st.lists(st.sampled_from("abcd"), min_size=1, max_size=6).map(" ".join), min_size=2, max_size=8)


@given(
    sentences.filter(lambda found: len(set(" ".join(found))) > 2),
    st.integers(1, 5),
    st.integers(1, 9),
    st.integers(1, 20),
)
def test_without_a_shuffle_it_is_the_feed_in_memory(found, context, batch, chunk):
    whole = corpus(found)
    one = LanguageFeed(whole, context=context, batch=batch, shuffle=False)
    other = StreamedLanguageFeed(whole, context=context, batch=batch, chunk=chunk, shuffle=False)
    assert len(one) == len(other)
    for tick in range(len(one)):
        assert_equal(one[tick], other[tick])


def test_every_token_is_a_target_once_an_epoch_within_its_chunk():
    whole = corpus()
    feed = StreamedLanguageFeed(whole, batch=5, chunk=18, epochs=2)  # rounded up to 20
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
    whole = corpus()
    for kind, options in ((StreamedLanguageFeed, {"chunk": 10}), (LanguageFeed, {}), (PairFeed, {"sample": 0})):
        one, other = (kind(part, epochs=2, **options) for part in (whole, found))
        assert one.describe() == other.describe() and len(one) == len(other)
        for tick in range(len(one)):
            assert_equal(one[tick], other[tick])


def test_descriptions():
    facts = StreamedLanguageFeed(corpus()).describe()
    others = [{"context": 3}, {"chunk": 512}, {"batch": 9}, {"epochs": 2}, {"seed": 1}, {"shuffle": False}]
    assert all(StreamedLanguageFeed(corpus(), **other).describe() != facts for other in others)
    assert facts["kind"] != LanguageFeed(corpus()).describe()["kind"]


def test_refusals():
    with pytest.raises(ValueError, match="corpus: found list, expected a Corpus"):
        StreamedLanguageFeed([1, 2])
    for name in ("context", "chunk", "batch", "epochs"):
        with pytest.raises(ValueError, match=f"{name}: found 0, expected a whole number"):
            StreamedLanguageFeed(corpus(), **{name: 0})
