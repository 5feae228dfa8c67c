import json
from itertools import chain

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hybrid.feeds.vocabulary import UNKNOWN, Vocabulary

TEXT = [["b", "a", "b"], [], ["c", "a", "b", "d"]]
words = st.text(st.characters(codec="utf-8"), min_size=1, max_size=4)
texts = st.lists(st.lists(words, max_size=8), max_size=8).filter(lambda text: len(set(chain(*text)) - {UNKNOWN}) > 1)


def test_words_of_equal_counts_are_in_alphabetical_order():
    text = [["d", "b", "a", "b"], ["c", "a", "b", UNKNOWN]]
    assert Vocabulary.build(text).words == ["b", "a", UNKNOWN, "c", "d"]


@pytest.mark.parametrize(
    "options, expected",
    [
        ({}, {"b": 3, "a": 2, "c": 1, "d": 1, UNKNOWN: 0}),
        ({"min_count": 2}, {"b": 3, UNKNOWN: 2, "a": 2}),
        ({"min_count": 2, "unknown": False}, {"b": 3, "a": 2}),
    ],
)
def test_what_is_kept(options, expected):
    vocabulary = Vocabulary.build(TEXT, **options)
    assert dict(zip(vocabulary.words, vocabulary.counts.tolist(), strict=True)) == expected
    assert vocabulary.counts.tolist() == sorted(expected.values(), reverse=True)
    assert vocabulary.counts.dtype == np.int64


@given(texts, st.booleans())
def test_encode_and_decode(text, unknown):
    vocabulary = Vocabulary.build(text, unknown=unknown)
    flat = list(chain(*text))
    ids = vocabulary.encode(flat)
    assert ids.dtype == np.int32
    assert vocabulary.decode(ids) == [word for word in flat if unknown or word != UNKNOWN]
    np.testing.assert_array_equal(np.bincount(ids, minlength=len(vocabulary)), vocabulary.counts)
    assert (np.diff(vocabulary.counts) <= 0).all()


@given(texts)
def test_save_and_load(tmp_path_factory, text):
    path = tmp_path_factory.mktemp("run") / "vocabulary.json"
    vocabulary = Vocabulary.build(text)
    vocabulary.save(path)
    again = Vocabulary.load(path)
    assert (again.words, again.counts.tolist()) == (vocabulary.words, vocabulary.counts.tolist())
    assert (again.unknown, again.sha256) == (vocabulary.unknown, vocabulary.sha256)


@pytest.mark.parametrize(
    "text, options, message",
    [
        ([], {}, "vocabulary: F has no words"),
        ([["a", "a"]], {}, "1 word occurs at least once in F; at least 2 are needed; give it more text"),
        (TEXT, {"min_count": 3}, "1 word occurs at least 3 times in F; at least 2 are needed; lower min_count"),
        (TEXT, {"min_count": 4}, "0 words occur at least 4 times in F"),
    ],
)
def test_too_little_text_is_refused(text, options, message):
    with pytest.raises(ValueError, match=message):
        Vocabulary.build(text, source="F", **options)


GOOD = {"format": "hybrid vocabulary 1", "words": ["a", "b"], "counts": [2, 1]}


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"{}",
        json.dumps(GOOD | {"format": "other"}).encode(),
        json.dumps(GOOD | {"words": ["a", 1]}).encode(),
        json.dumps(GOOD | {"counts": [2]}).encode(),
        json.dumps(GOOD | {"counts": [2, 10**30]}).encode(),
        json.dumps(GOOD | {"words": ["a", "a"]}).encode(),
    ],
)
def test_files_that_are_no_vocabulary(tmp_path, content):
    path = tmp_path / "vocabulary.json"
    path.write_bytes(content)
    with pytest.raises(ValueError, match=r"vocabulary.json: "):
        Vocabulary.load(path)
