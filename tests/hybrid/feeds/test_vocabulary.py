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


def test_most_frequent_first_then_by_name():
    vocabulary = Vocabulary.build(TEXT, unknown=False)
    assert vocabulary.words == ["b", "a", "c", "d"]
    assert vocabulary.counts.tolist() == [3, 2, 1, 1]
    assert vocabulary.counts.dtype == np.int64


def test_ties_in_the_order_of_the_text():
    text = [["d", "b", "a", "b"], ["c", "a", "b", UNKNOWN]]
    assert Vocabulary.build(text, unknown=False, ties="text").words == ["b", "a", "d", "c"]
    assert Vocabulary.build(text, ties="text").words == ["b", "a", "d", "c", UNKNOWN]
    assert Vocabulary.build(text).words == ["b", "a", UNKNOWN, "c", "d"]
    with pytest.raises(ValueError, match=r"ties: found .length., expected"):
        Vocabulary.build(text, ties="length")


@pytest.mark.parametrize(
    "options, expected",
    [
        ({}, {"b": 3, "a": 2, "c": 1, "d": 1, UNKNOWN: 0}),
        ({"min_count": 2}, {"b": 3, UNKNOWN: 2, "a": 2}),
        ({"min_count": 2, "unknown": False}, {"b": 3, "a": 2}),
        ({"max_size": 3}, {"b": 3, UNKNOWN: 2, "a": 2}),
        ({"max_size": 3, "unknown": False}, {"b": 3, "a": 2, "c": 1}),
    ],
)
def test_what_is_kept(options, expected):
    vocabulary = Vocabulary.build(TEXT, **options)
    assert dict(zip(vocabulary.words, vocabulary.counts.tolist(), strict=True)) == expected
    assert vocabulary.counts.tolist() == sorted(expected.values(), reverse=True)


def test_unknown_words():
    text = [*TEXT, [UNKNOWN, UNKNOWN, UNKNOWN]]  # as WikiText writes it
    known = Vocabulary.build(text, min_count=2)
    assert known.counts[known.unknown] == 5
    assert known.decode(known.encode(["a", "d", "x", UNKNOWN])) == ["a", UNKNOWN, UNKNOWN, UNKNOWN]
    bare = Vocabulary.build(text, min_count=2, unknown=False)
    assert bare.unknown is None
    assert bare.decode(bare.encode(["a", "d", UNKNOWN, "b"])) == ["a", "b"]


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
def test_the_order_of_sentences_does_not_matter(text):
    assert Vocabulary.build(text).sha256 == Vocabulary.build(text[::-1]).sha256


@given(texts)
def test_save_and_load(tmp_path_factory, text):
    path = tmp_path_factory.mktemp("run") / "vocabulary.json"
    vocabulary = Vocabulary.build(text)
    vocabulary.save(path)
    again = Vocabulary.load(path)
    assert (again.words, again.counts.tolist()) == (vocabulary.words, vocabulary.counts.tolist())
    assert (again.unknown, again.sha256) == (vocabulary.unknown, vocabulary.sha256)


def test_digest_sees_words_and_counts():
    digests = {Vocabulary(words, counts).sha256 for words, counts in (("ab", [2, 1]), ("ac", [2, 1]), ("ab", [2, 0]))}
    assert len(digests) == 3


@pytest.mark.parametrize(
    "text, options, message",
    [
        ([], {}, "vocabulary: F has no words"),
        ([[], []], {}, "vocabulary: F has no words"),
        ([["a", "a"]], {}, "1 word occurs at least once in F; at least 2 are needed; give it more text"),
        (TEXT, {"min_count": 3}, "1 word occurs at least 3 times in F; at least 2 are needed; lower --min-count"),
        (TEXT, {"min_count": 4}, "0 words occur at least 4 times in F"),
        ([["a", UNKNOWN]], {}, "1 word occurs"),
        (TEXT, {"max_size": 2}, "max_size 2 leaves 1 words of F; at least 2 are needed; raise it"),
    ],
)
def test_too_little_text_is_refused(text, options, message):
    with pytest.raises(ValueError, match=message):
        Vocabulary.build(text, source="F", **options)


@pytest.mark.parametrize(
    "words, counts, message", [("aa", [1, 1], "'a' .* twice"), ("ab", [1], "counts"), ("ab", [1, -1], "counts")]
)
def test_contradictions_are_refused(words, counts, message):
    with pytest.raises(ValueError, match=message):
        Vocabulary(words, counts)


@pytest.mark.parametrize("id", [-1, 4])
def test_ids_out_of_range(id):
    with pytest.raises(IndexError, match=rf"ids\[1\]: found {id}, expected 0 to 3"):
        Vocabulary.build(TEXT, unknown=False).decode([0, id])


@pytest.mark.parametrize("ids", [0, [0.5], "ab", [[0, 1]], np.zeros((1, 2), int)])
def test_decode_wants_one_row_of_ids(ids):
    with pytest.raises(ValueError, match=r"ids: found .*, expected one row of whole numbers"):
        Vocabulary.build(TEXT).decode(ids)


def test_decode_of_none_and_of_any_iterable():
    vocabulary = Vocabulary("ab", [2, 1])
    assert vocabulary.decode([]) == vocabulary.decode(np.empty(0)) == []
    assert vocabulary.decode(iter([1, 0])) == vocabulary.decode(np.array([1, 0], np.uint8)) == ["b", "a"]


@pytest.mark.parametrize("tokens", ["the president", b"the president"])
def test_the_characters_of_a_string_are_no_words(tokens):
    vocabulary = Vocabulary.build(TEXT)
    remedy = r"tokens: found the string b?'the president', expected a list of words; b?'the president'.split\(\)"
    with pytest.raises(ValueError, match=remedy):
        vocabulary.encode(tokens)
    with pytest.raises(ValueError, match="sentence: found the string"):
        Vocabulary.build([tokens])
    with pytest.raises(ValueError, match=r"sentences: found the string .* expected sentences, each a list of words"):
        Vocabulary.build(tokens)


def test_words_are_strings():
    with pytest.raises(ValueError, match=r"words\[1\]: found 7, expected a string"):
        Vocabulary(["a", 7], [1, 1])


def test_a_word_that_must_be_there():
    vocabulary = Vocabulary.build(TEXT)
    assert vocabulary.decode([vocabulary.id("a")]) == ["a"]
    with pytest.raises(ValueError, match=r"word 'x': not in the vocabulary; expected one of its 5 words"):
        vocabulary.id("x")


GOOD = {"format": "hybrid vocabulary 1", "words": ["a", "b"], "counts": [2, 1]}


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"\xff\xfe",
        b"[]",
        b"{}",
        json.dumps(GOOD).encode()[:-5],
        json.dumps(GOOD | {"format": "other"}).encode(),
        json.dumps(GOOD | {"words": ["a", 1]}).encode(),
        json.dumps(GOOD | {"words": None}).encode(),
        json.dumps(GOOD | {"counts": [2, 1.5]}).encode(),
        json.dumps(GOOD | {"counts": [2]}).encode(),
        json.dumps(GOOD | {"counts": [2, 10**30]}).encode(),
        json.dumps(GOOD | {"words": ["a", "a"]}).encode(),
        b"[" * 100_000,
    ],
)
def test_files_that_are_no_vocabulary(tmp_path, content):
    path = tmp_path / "vocabulary.json"
    path.write_bytes(content)
    with pytest.raises(ValueError, match=r"vocabulary.json: "):
        Vocabulary.load(path)


def test_a_missing_file_is_named(tmp_path):
    with pytest.raises(FileNotFoundError, match="nowhere"):
        Vocabulary.load(tmp_path / "nowhere")
