"""Vectors by name answer as gensim's KeyedVectors do on the same vectors."""

import numpy as np
import pytest

from hybrid.use import vectors as module
from hybrid.use.vectors import Vectors

WORDS = [f"word{number}" for number in range(300)]
ROWS = np.random.default_rng(0).normal(size=(300, 12)).astype(np.float32)


@pytest.fixture(scope="module")
def ours():
    return Vectors(WORDS, ROWS)


@pytest.fixture(scope="module")
def theirs():
    models = pytest.importorskip("gensim.models")
    keyed = models.KeyedVectors(12)
    keyed.add_vectors(WORDS, ROWS)
    return keyed


def assert_same(found, expected):
    assert [word for word, _ in found] == [word for word, _ in expected]
    np.testing.assert_allclose([score for _, score in found], [score for _, score in expected], atol=1e-6)


@pytest.mark.parametrize(
    ("positive", "negative", "topn"),
    [
        ("word3", [], 10),
        (["word3"], [], 299),
        (["word3", "word4"], ["word5"], 5),
        (["word3", "word3"], ["word7", "word8"], 1),
        (["word3", "word9"], "word10", 7),
        ([], ["word1"], 3),
    ],
)
def test_most_similar_is_gensims(ours, theirs, positive, negative, topn):
    assert_same(ours.most_similar(positive, negative, topn), theirs.most_similar(positive, negative, topn))


def test_everything_else_is_gensims(ours, theirs):
    assert ours.similarity("word1", "word2") == pytest.approx(theirs.similarity("word1", "word2"), abs=1e-6)
    np.testing.assert_array_equal(ours["word8"], theirs["word8"])
    np.testing.assert_array_equal(ours[["word8", "word1"]], theirs[["word8", "word1"]])
    assert "word8" in ours and "word300" not in ours and len(ours) == len(theirs)


def test_neighbours_of_many_are_those_of_each(ours, monkeypatch):
    monkeypatch.setattr(module, "BLOCK", 7)
    found = ours.neighbours(WORDS[:40], 5)
    assert found.asked == WORDS[:40] and found.ids.shape == found.scores.shape == (40, 5)
    for word, pairs in zip(found.asked, found.pairs, strict=True):
        assert_same(pairs, ours.most_similar(word, topn=5))
    assert ours.neighbours("word1", 300).names[0][-1:] != ["word1"]
    assert len(ours.neighbours("word1", 300).names[0]) == 299  # all but itself
    assert ours.neighbours([], 3).ids.shape == (0, 3)


@pytest.mark.parametrize(
    ("ask", "message"),
    [
        (lambda v: v["word"], "word 'word': not known; did you mean"),
        (lambda v: v.most_similar(["word1", "other"]), "word 'other': not known"),
        (lambda v: v.most_similar([], []), "neither positive nor negative"),
        (lambda v: v.most_similar("word1", topn=0), "topn: found 0"),
        (lambda v: v.neighbours("word1", 301), "k: found 301, expected a whole number from 1 to 300"),
        (lambda v: Vectors(["a"], np.ones((2, 3))), r"found float64 \(2, 3\), expected floats \(1, D\)"),
    ],
)
def test_what_is_refused(ours, ask, message):
    with pytest.raises(ValueError, match=message):
        ask(ours)
