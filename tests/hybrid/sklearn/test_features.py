"""Dense and sparse features as an engine takes them."""

import numpy as np
import pytest
from scipy import sparse

from hybrid.engine import Embedding
from hybrid.engine.embedding import Inputs
from hybrid.sklearn import base

X = sparse.random_array((50, 7), density=0.3, format="csr", dtype=np.float32, rng=np.random.default_rng(0))
TARGET = np.arange(50) % 3
SOURCES = {"rows": lambda: Embedding(7, 4, mean=True, weighted=True), "numbers": lambda: Inputs(7)}


def dense(batch):
    """The numbers of a batch's examples."""
    if batch.x is not None:
        return batch.x
    return sparse.csr_array((batch.values, batch.ids, batch.bag_at), (batch.examples, 7)).toarray()


@pytest.mark.parametrize(("source", "form"), [("rows", np.asarray), ("numbers", sparse.csr_array)])
def test_batches_have_the_numbers_of_x_in_the_form_that_the_source_takes(source, form):
    made = base.feed(SOURCES[source](), form(X.toarray()), TARGET, batch=8, seed=1)
    met = []
    for tick in range(made.ticks_per_epoch):
        batch = made[tick]
        assert (batch.x is not None) == (source == "numbers") and dense(batch).dtype == np.float32
        met += [(*row, target) for row, target in zip(dense(batch).tolist(), batch.target.tolist(), strict=True)]
    assert sorted(met) == sorted(
        (*row, target) for row, target in zip(X.toarray().tolist(), TARGET.tolist(), strict=True)
    )


def test_a_feed_tells_what_its_batches_have():
    numbers, rows = (base.feed(SOURCES[name](), X, TARGET, batch=8) for name in ("numbers", "rows"))
    assert (numbers.width, numbers.rows, numbers.most_ids) == (7, 0, 0)
    assert rows.rows == 7 and rows.most_ids >= 8 and numbers.describe() != rows.describe()


@pytest.mark.parametrize(("source", "form"), [("rows", sparse.csr_array), ("numbers", np.asarray)])
def test_questions_are_asked_part_by_part(source, form, monkeypatch):
    monkeypatch.setattr(base, "NUMBERS", 70)
    parts, found = [], []
    for part, asked in base.questions(SOURCES[source](), form(X.toarray()), 7):
        parts.append(part)
        entries = (asked.get(name) for name in ("values", "ids", "bag_at"))
        found.append(asked["x"] if "x" in asked else sparse.csr_array(tuple(entries), (10, 7)).toarray())
    assert len(parts) == 5
    np.testing.assert_array_equal(np.concatenate(found), X.toarray())


def test_a_row_whose_answer_is_larger_than_a_part_is_asked_alone(monkeypatch):
    monkeypatch.setattr(base, "NUMBERS", 70)
    parts = [part for part, _ in base.questions(SOURCES["numbers"](), X.toarray(), 71)]
    assert parts == [slice(row, row + 1) for row in range(X.shape[0])]
