"""Windows of sentences, of a running text and of histories: each target once, after the ids before it."""

import functools
import itertools

import numpy as np
import pytest

from hybrid.feeds import ratings
from hybrid.feeds.histories import Histories
from hybrid.feeds.sequences import SequenceFeed, transition_vectors, transitions, turned
from hybrid.feeds.text import Corpus
from hybrid.feeds.vocabulary import Vocabulary

SENTENCES = [[0, 1, 2, 3, 4, 5, 6], [7], [2, 2], [3, 1, 4, 1]]
V = 8


def corpus():
    counts = np.bincount(np.concatenate(SENTENCES), minlength=V)
    return Corpus([map(str, sentence) for sentence in SENTENCES], Vocabulary(map(str, range(V)), counts))


def histories(weight=None):
    user = np.repeat(np.arange(len(SENTENCES)), [len(sentence) for sentence in SENTENCES])
    item = np.concatenate(SENTENCES)
    return ratings.histories(ratings.from_columns(user, item, np.arange(len(item)), weight))


def windows(sequences, length, start):
    """(inputs, targets) of every window, without padding, as a serial loop cuts them."""
    found = []
    for sequence in sequences:
        inputs, targets = ([V, *sequence[:-1]], sequence) if start else (sequence[:-1], sequence[1:])
        cuts = [0, *range(len(targets) % length, len(targets) + 1, length)]
        found += [(inputs[a:b], targets[a:b]) for a, b in itertools.pairwise(cuts) if b > a]
    return found


def unpadded(feed):
    """What a feed gives: the same, and that its padding has no weight."""
    found = []
    for tick in range(feed.ticks_per_epoch):
        batch = feed[tick]
        weight = np.ones(batch.examples) if batch.weight is None else batch.weight
        parts = (array.reshape(-1, feed.length) for array in (batch.ids, batch.target, weight))
        for ids, target, kept in zip(*parts, strict=True):
            count = int(kept.sum())
            assert (kept[:count] == 1).all() and not kept[count:].any() and (ids[count:] == V).all()
            found.append((ids[:count].tolist(), target[:count].tolist()))
    return found


@pytest.mark.parametrize("length", [1, 3, 20])
@pytest.mark.parametrize(("start", "running"), [(True, False), (False, False), (False, True)])
def test_every_id_is_a_target_once_after_those_before_it(length, start, running):
    feed = SequenceFeed(corpus(), length=length, windows=2, start=start, running=running, seed=None)
    sequences = [list(itertools.chain(*SENTENCES))] if running else SENTENCES
    assert unpadded(feed) == windows(sequences, length, start)
    shuffled = SequenceFeed(corpus(), length=length, windows=3, start=start, running=running, seed=4)
    assert sorted(unpadded(shuffled)) == sorted(unpadded(feed))


def test_histories_are_sequences_of_the_items_of_a_user():
    feed = SequenceFeed(histories(), length=3, start=False, seed=None)
    items, found = feed.source.items, unpadded(feed)
    named = [tuple([int(items[id]) for id in part] for part in window) for window in found]
    assert named == windows(SENTENCES, 3, False)


@pytest.mark.parametrize("start", [True, False])
def test_a_question_is_the_last_window_of_each_sequence(start):
    feed = SequenceFeed(corpus(), length=3, start=start)
    ids, rows = feed.question([[5], [1, 2], [1, 2, 3, 4], *([[]] if start else [])])
    if start:
        assert ids.reshape(-1, 3).tolist() == [[V, 5, V], [V, 1, 2], [2, 3, 4], [V, V, V]]
        assert rows.tolist() == [1, 5, 8, 9]
    else:
        assert ids.reshape(-1, 3).tolist() == [[5, V, V], [1, 2, V], [2, 3, 4]] and rows.tolist() == [0, 4, 8]


of_threes, ONE_WORD = functools.partial(SequenceFeed, length=3), Corpus.from_ids([1], corpus().vocabulary)


@pytest.mark.parametrize(
    "call, message",
    [
        (lambda: of_threes([[1, 2]]), "source: found list, expected a Corpus or Histories"),
        (lambda: SequenceFeed(corpus(), length=0), "length: found 0, expected a whole number of at least 1"),
        (lambda: of_threes(histories(), running=True), "running: found True with Histories, expected False"),
        (lambda: of_threes(corpus(), start=False).question([[]]), r"sequences\[0\]: found no id"),
        (lambda: of_threes(ONE_WORD, start=False), "source: no sequence has a target"),
    ],
)
def test_what_makes_no_windows_is_refused(call, message):
    with pytest.raises(ValueError, match=message):
        call()


def test_targets_of_histories_keep_their_weights():
    weight = np.arange(1, sum(map(len, SENTENCES)) + 1) / 4
    source = histories(weight)
    feed, plain = (SequenceFeed(s, length=3, windows=2) for s in (source, source._replace(weight=None)))
    found = []
    for tick in range(len(feed)):
        weighted, ones = feed[tick], plain[tick]
        kept = np.ones(ones.examples) if ones.weight is None else ones.weight
        assert weighted.weight.dtype == np.float32 and not weighted.weight[kept == 0].any()
        found += zip(weighted.weight[kept > 0].tolist(), weighted.target[kept > 0].tolist(), strict=True)
    assert sorted(found) == list(zip(weight.tolist(), source.item.tolist(), strict=True))


TABLE = Histories(np.array([0, 1, 2, 1, 3, 2], np.int32), np.array([0, 4, 6]), ["a", "b"], list("vwxyz"))


def test_places_count_less_the_further_away_and_users_apart(monkeypatch):
    expected = np.zeros((5, 5))
    for items in ([0, 1, 2, 1], [3, 2]):
        for first, item in enumerate(items):
            for distance, after in enumerate(items[first + 1 : first + 3]):
                expected[item, after] += 0.5**distance
    monkeypatch.setattr("hybrid.feeds.sequences.DISTANCES", 2)
    np.testing.assert_allclose(transitions(TABLE, 0.5).toarray(), expected)


def test_vectors_give_the_table_back_and_an_item_that_nobody_has_is_0():
    found = transition_vectors(TABLE, 7).astype(float)
    table = transitions(TABLE).toarray()
    wanted = np.log1p(table + table.T)
    np.testing.assert_allclose(np.linalg.norm(found, axis=0)[:4] ** 2, np.linalg.svd(wanted)[1][:4], rtol=1e-4)
    np.testing.assert_allclose((found @ found.T) @ (found @ found.T), wanted @ wanted.T, atol=1e-4)
    assert not found[4].any() and not found[:, 4:].any()


def test_rows_are_turned_and_stay_as_long():
    rows = np.random.default_rng(0).normal(size=(3, 4)).astype(np.float32)
    towards = np.array([[9, 0, 0, 0], [0, 0, 0, 0], [0, 0, 0.1, 0]], np.float32)
    found = turned(rows, towards)
    np.testing.assert_allclose(np.linalg.norm(found, axis=1), np.linalg.norm(rows, axis=1), rtol=1e-5)
    np.testing.assert_allclose(found[1], rows[1], rtol=1e-5)
    assert found[0, 0] / np.linalg.norm(found[0]) > 0.9 and found[2, 2] / np.linalg.norm(found[2]) > 0.9
