from collections import Counter
from itertools import chain

import pytest

from hybrid.feeds import text
from hybrid.feeds.text import Corpus, Text
from hybrid.feeds.vocabulary import Vocabulary


def written(tmp_path, content: bytes):
    path = tmp_path / "some.txt"
    path.write_bytes(content)
    return path


@pytest.mark.parametrize(
    "options, expected",
    [
        ({}, ["don't", "stop", ",", "<unk>", "2", ".", "5", "«", "été", "»", "!", "!"]),
        ({"lower": False}, ["Don't", "stop", ",", "<unk>", "2", ".", "5", "«", "Été", "»", "!", "!"]),
        ({"tokens": "whitespace"}, ["don't", "stop,", "<unk>", "2.5", "«été»!!"]),
        ({"tokens": "whitespace", "lower": False}, ["Don't", "stop,", "<unk>", "2.5", "«Été»!!"]),
    ],
)
def test_tokens(options, expected):
    assert list(Text(["Don't stop, <unk> 2.5 «Été»!!", " \t"], **options)) == [expected]


def test_every_line_ends_with_eos(tmp_path):
    path = written(tmp_path, b" \n a b \r\n\nc <eos> d\n")
    assert list(text.read(path, eos=True)) == [["<eos>"], ["a", "b", "<eos>"], ["<eos>"], ["c", "<eos>", "d", "<eos>"]]
    assert list(text.read(written(tmp_path, b"a"), eos=True)) == [["a", "<eos>"]]
    long = "seven " * 10_000
    assert list(chain(*text.read(written(tmp_path, long.encode()), eos=True))).count("<eos>") == 1
    parts = Text(["a"] * 10, eos=True).split()
    assert list(parts.valid) == [["a", "<eos>"]]


def test_long_lines_are_cut_at_white_space(tmp_path):
    line = "seven " * 10_000 + "x" * 50_000
    found = text.read(written(tmp_path, line.encode()), tokens="whitespace")
    assert max(map(len, found.sentences)) <= text.LONGEST + 1
    tokens = list(chain(*found))
    assert tokens[:10_000] == ["seven"] * 10_000
    assert "".join(tokens[10_000:]) == "x" * 50_000


def test_split_keeps_every_sentence_once_and_in_order():
    sentences = [str(number) for number in range(100)]
    parts = Text(sentences, source="F").split(valid=0.1, test=0.2, seed=3)
    assert [len(part.sentences) for part in parts] == [70, 10, 20]
    assert sorted(chain(*(part.sentences for part in parts)), key=int) == sentences
    for part in parts:
        assert part.sentences == sorted(part.sentences, key=int)
        assert part.source == "F"
    again, other = (Text(sentences).split(valid=0.1, test=0.2, seed=seed) for seed in (3, 4))
    assert again.valid.sentences == parts.valid.sentences != other.valid.sentences


@pytest.mark.parametrize(
    "count, options, message",
    [
        (1, {}, r"split: F has 1 sentences \(lines\); expected at least 2"),
        (2, {"test": 0.1}, "expected at least 3"),
        (9, {"valid": 0.5, "test": 0.5}, "expected shares that sum to less than 1"),
        (9, {"valid": -0.1}, "expected shares"),
    ],
)
def test_split_refuses(count, options, message):
    with pytest.raises(ValueError, match=message):
        Text(["a b"] * count, source="F").split(**options)


def test_documentation_is_english_text():
    sentences = list(text.documentation())
    tokens = list(chain(*sentences))
    assert len(tokens) > 50_000
    assert len(sentences) > 1_000
    assert "the" in [word for word, _ in Counter(tokens).most_common(5)]
    assert ["*"] * 8 not in sentences  # underlines
    assert all(any(map(str.isalnum, chain(*sentence))) for sentence in sentences)


@pytest.mark.parametrize(
    "ids, error, message",
    [
        ([0, 2], IndexError, r"ids\[1\]: found 2, expected 0 to 1"),
        ([], ValueError, "ids: found none, expected a text"),
        ([0.5], ValueError, r"ids: found float64 \(1,\), expected one row of whole numbers"),
        ([[0], [1]], ValueError, r"ids: found int64 \(2, 1\), expected one row"),
    ],
)
def test_ids_that_are_no_corpus(ids, error, message):
    with pytest.raises(error, match=message):
        Corpus.from_ids(ids, Vocabulary("ab", [1, 1]))
