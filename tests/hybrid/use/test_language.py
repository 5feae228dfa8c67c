"""Words that follow, texts continued, probabilities of texts: against scores of all words, and the engine's evaluation."""

import math
from types import SimpleNamespace

import numpy as np
import pytest

from hybrid import (
    MLP,
    SGD,
    Corpus,
    Embedding,
    Engine,
    FullReadout,
    LanguageFeed,
    LanguageModel,
    NeighbourReadout,
    Text,
    TreeReadout,
    Vocabulary,
)  # fmt: skip

LINES = ["one two three four Five.", "two three four five six.", "three four five six seven."] * 20
CONTEXT = 3


def trained(eos=False, lower=True):
    text = Text(LINES, lower=lower, eos=eos)
    vocabulary = Vocabulary.build(text)
    corpus = Corpus(text, vocabulary)
    corpus = Corpus.from_ids(corpus.ids, vocabulary) if eos else corpus
    feed = LanguageFeed(corpus, context=CONTEXT, batch=32, epochs=12)
    embedding = Embedding(feed.rows, 6, per_example=CONTEXT, spread=0.3, optimiser=SGD(0.3))
    trunk, readout = MLP([18, 16, 8], optimiser=SGD(0.3)), TreeReadout(feed.counts, 8, optimiser=SGD(0.2))
    engine = Engine(embedding, trunk, readout, device="cpu", threads=2)
    for _ in engine.run(feed):
        pass
    return LanguageModel(engine, vocabulary, eos=eos, lower=lower), corpus


def other(model, classes=0, rows=0):
    """The words under an engine of so many more."""
    words = len(model.vocabulary)
    parts = {"readout": SimpleNamespace(classes=words + classes), "embedding": SimpleNamespace(rows=words + 1 + rows)}
    return LanguageModel(SimpleNamespace(**parts), model.vocabulary)


@pytest.fixture(scope="module")
def model():
    return trained()[0]


def test_next_words_are_the_best_of_all(model):
    found = model.next("One two three", 4)
    ids = model.vocabulary.encode(["one", "two", "three"])
    probabilities = np.exp(model.engine.scores(ids)[0].astype(np.float64))
    order = np.argsort(-probabilities)[:4]
    assert [word for word, _ in found] == [model.vocabulary.words[id] for id in order]
    np.testing.assert_allclose([share for _, share in found], probabilities[order], rtol=1e-4)
    assert found[0][0] == "four" and found[0][1] > 0.5
    assert model.next(["one", "two", "three"], 4) == found


def test_next_words_of_an_index_have_probabilities():
    corpus = trained()[1]
    feed = LanguageFeed(corpus, context=CONTEXT, batch=32)
    rows = Embedding(feed.rows, 6, per_example=CONTEXT, spread=0.3)
    near = NeighbourReadout(FullReadout(feed.counts, 8), index="exact")
    model = LanguageModel(Engine(rows, MLP([18, 8]), near, device="cpu"), corpus.vocabulary)
    assert sum(share for _, share in model.next("one two three", len(corpus.vocabulary))) == pytest.approx(1, rel=1e-4)


def test_contexts_are_the_last_words_of_the_last_line(model):
    pad, id = len(model.vocabulary), model.vocabulary.words.index
    found = model.contexts(["", "Two", "nine one two\nthree four", "one two three four five"])
    assert found[:2].tolist() == [[pad] * 3, [pad, pad, id("two")]]
    assert found[2:].tolist() == [[pad, id("three"), id("four")], [id("three"), id("four"), id("five")]]
    assert model.contexts(["nine two"])[0].tolist() == [pad, model.vocabulary.unknown, id("two")]
    assert model.unknown("nine two Nine ten") == ["nine", "ten"]


def test_log_prob_is_of_each_word_after_those_before(model):
    found = model.log_prob("One two three")
    for at, word in enumerate(["one", "two", "three"]):
        before = " ".join(["one", "two"][:at])
        scores = model.engine.scores(model.contexts([before]))[0]
        assert found[at] == pytest.approx(scores[model.vocabulary.words.index(word)], abs=1e-5)
    assert model.perplexity("one two three") == pytest.approx(math.exp(-found.mean()), rel=1e-6)
    assert model.log_prob([["one", "two", "three"]]).tobytes() == found.tobytes()
    assert len(model.log_prob("one two\n\nthree nine")) == 4


def test_greedy_takes_the_likeliest(model):
    found = model.continue_text("one two three", 3, temperature=0)
    assert found == [model.next("one two three " + " ".join(found[:at]), 1)[0][0] for at in range(3)]
    assert model.continue_text("one", 4, temperature=1e-300) == model.continue_text("one", 4, temperature=0)


def test_draws_follow_the_probabilities_and_the_seed(model):
    """Chi square of 2,000 draws against the model's probabilities without "<unk>"."""
    assert model.continue_text("one", 8, seed=3) == model.continue_text("one", 8, seed=3)
    assert len({tuple(model.continue_text("one", 8, seed=seed)) for seed in range(5)}) > 1
    scores = model.engine.scores(model.contexts(["three"]))[0].astype(np.float64)
    for temperature in (1.0, 2.5):
        shares = np.exp(scores / temperature)
        shares[model.vocabulary.unknown] = 0
        shares /= shares.sum()
        counts = np.zeros(len(shares))
        rng = np.random.default_rng(0)
        for _ in range(2000):
            counts[next(model._drawn(model.contexts(["three"]), temperature, rng))] += 1
        likely = shares > 0.002
        assert counts[model.vocabulary.unknown] == 0
        square = ((counts - 2000 * shares)[likely] ** 2 / (2000 * shares[likely])).sum()
        assert square < 3 * likely.sum() + 10


@pytest.mark.parametrize(
    ("ask", "message"),
    [
        (lambda m: m.next("one", 99), "k: found 99"),
        (lambda m: m.continue_text("one", -1), "tokens: found -1"),
        (lambda m: m.contexts("one two"), "texts: found the string 'one two', expected a list"),
        (lambda m: m.log_prob(""), "text: found no words"),
        (lambda m: m.similar("nine", 3), "word 'nine': not known"),
        (lambda m: LanguageModel(m.engine, Vocabulary(["a", "b"], [1, 1])), "vocabulary: found 2 words, expected"),
        (lambda m: other(m, classes=1), "vocabulary: found 9 words, expected 10"),
    ],
)
def test_what_is_refused(model, ask, message):
    with pytest.raises(ValueError, match=message):
        ask(model)
