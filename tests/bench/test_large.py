"""Classes of n-grams, worked by hand; the search of rates."""

import numpy as np
import pytest

from bench.quality.large import CONTEXT, Grams, Size, climb, make


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "train.txt").write_text("a b a b\na b c\n")
    (tmp_path / "valid.txt").write_text("a b a\nx\n")
    return tmp_path


def test_every_pair_that_is_kept_is_a_class_and_the_words_before_it_are_its_context(folder):
    """Words by first sight: a 0, b 1, <eos> 2, c 3; 4 stands before the text. Pairs: ab 3 times, others once."""
    data = make(folder, Size((2,), 2))
    assert data.counts.tolist() == [3, 1] and data.train.rows == 5
    assert data.train.target.tolist() == [0, 1, 0, 0]
    assert data.train.contexts.tolist() == [[4, 4, 4, 4], [4, 4, 4, 0], [4, 4, 0, 1], [1, 0, 1, 2]]
    assert data.train.share == pytest.approx(4 / 8)
    assert data.valid.target.tolist() == [0, 1] and data.valid.contexts[1].tolist() == [4, 4, 4, 0]


def test_phrases_of_several_lengths_are_classes_beside_each_other(folder):
    data = make(folder, Size((1, 2), None))
    assert data.counts.sum() == 9 + 8 and data.counts[:3].tolist() == [3, 3, 3]  # a, b, ab
    assert (np.diff(data.counts) <= 0).all() and data.train.share == 1


def test_an_epoch_has_every_example_once(folder):
    data = make(folder, Size((1, 2), None))
    feed = Grams(data.train, data.counts, epochs=2)
    batches = [feed[tick] for tick in range(len(feed))]
    assert len(batches) == 2 and [sorted(batch.target) for batch in batches] == [sorted(data.train.target)] * 2
    assert batches[0].target.tolist() != batches[1].target.tolist()
    assert batches[0].ids.shape == (17 * CONTEXT,)


def test_a_search_walks_up_or_down_in_each_rate_as_long_as_that_is_better():
    asked = []

    def perplexity(rates):
        asked.append(rates)
        return abs(rates[0] - 3) + abs(rates[1] - 0.1)

    assert climb(perplexity, (1.0, 0.3)) == pytest.approx((3.0, 0.1))
    assert asked == [(1.0, 0.3), (3.0, 0.3), (9.0, 0.3), (3.0, 0.9), (3.0, 0.1), (3.0, 0.033)]
