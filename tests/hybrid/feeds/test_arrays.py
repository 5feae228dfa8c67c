"""Examples of every form, cut into batches; what the forms are is in hybrid/feeds/arrays.py."""

import numpy as np
import pytest
from scipy import sparse

from hybrid import ArrayFeed
from hybrid.feeds import fitting
from tests.support.purity import check_feed

N = 23
RNG = np.random.default_rng(0)
IDS = RNG.integers(0, 7, N)
CONTEXTS = RNG.integers(0, 7, (N, 3))
LISTS = [RNG.integers(0, 7, size).tolist() for size in RNG.integers(1, 5, N)]
SPARSE = sparse.csr_array(np.where(RNG.random((N, 7)) < 0.4, RNG.random((N, 7)), 0))
DENSE = RNG.normal(size=(N, 4))
TARGET = RNG.integers(0, 5, N)
SEVERAL = [RNG.choice(5, size, replace=False).tolist() for size in RNG.integers(0, 4, N)]
WEIGHT = RNG.random(N)

FORMS = {
    "ids": (IDS, TARGET),
    "contexts": (CONTEXTS, TARGET),
    "lists": (LISTS, TARGET),
    "sparse": (SPARSE, TARGET),
    "columns": (SPARSE.tocsc(), TARGET),
    "numbers": (DENSE, TARGET),
    "several targets": (IDS, SEVERAL),
    "sparse to sparse": (SPARSE, sparse.csr_array(RNG.random((N, 5)) < 0.3)),
}


def of_example(batch, b):
    """Everything that a batch says of one example."""
    k = 0 if batch.ids is None else len(batch.ids) // batch.examples
    ids = slice(b * k, (b + 1) * k) if batch.bag_at is None else slice(*batch.bag_at[b : b + 2])
    many = slice(b, b + 1) if batch.target_at is None else slice(*batch.target_at[b : b + 2])
    return (
        None if batch.ids is None else tuple(batch.ids[ids].tolist()),
        None if batch.values is None else tuple(batch.values[ids].tolist()),
        None if batch.x is None else tuple(batch.x[b].tolist()),
        tuple(batch.target[many].tolist()),
        None if batch.weight is None else float(batch.weight[b]),
    )


def examples(feed):
    return [of_example(batch, b) for batch in feed for b in range(batch.examples)]


def expected(inputs, target):
    rows = []
    for n in range(N):
        ids = values = x = None
        if inputs is DENSE:
            x = tuple(DENSE[n].astype(np.float32).tolist())
        elif sparse.issparse(inputs):
            row = SPARSE[[n]].toarray()[0]
            ids = tuple(np.flatnonzero(row).tolist())
            values = tuple(row[row != 0].astype(np.float32).tolist())
        else:
            ids = tuple(np.atleast_1d(inputs[n]).tolist())
        if sparse.issparse(target):
            goal = tuple(np.flatnonzero(target[[n]].toarray()[0]).tolist())
        else:
            goal = tuple(np.atleast_1d(np.array(target[n], int)).tolist())
        rows.append((ids, values, x, goal, float(np.float32(WEIGHT[n]))))
    return rows


@pytest.mark.parametrize("form", FORMS)
def test_every_example_is_there_once_an_epoch(form):
    given = FORMS[form]
    feed = ArrayFeed(*given, weight=WEIGHT, batch=5, seed=None)
    assert examples(feed) == expected(*given)
    shuffled = ArrayFeed(*given, weight=WEIGHT, batch=5, epochs=2)
    check_feed(lambda: ArrayFeed(*given, weight=WEIGHT, batch=5, epochs=2))
    for tick in range(len(shuffled)):
        fitting(shuffled, tick)
    both = examples(shuffled)
    key = repr
    assert sorted(both[:N], key=key) == sorted(both[N:], key=key) == sorted(expected(*given), key=key)
    assert both[:N] != both[N:] != examples(ArrayFeed(*given, weight=WEIGHT, batch=5, seed=1))


def test_counts_sizes_and_descriptions():
    feed = ArrayFeed(LISTS, SEVERAL, rows=9, classes=6, batch=5)
    assert (feed.rows, feed.classes, len(feed)) == (9, 6, 5)
    np.testing.assert_array_equal(feed.counts, [sum(s.count(c) for s in SEVERAL) for c in range(6)])
    assert feed.most_ids == sum(sorted(map(len, LISTS))[-5:])
    assert feed.most_targets == sum(sorted(map(len, SEVERAL))[-5:])
    others = [
        ArrayFeed(LISTS, SEVERAL, rows=9, classes=6, batch=6),
        ArrayFeed(LISTS, SEVERAL, rows=9, classes=6, batch=5, seed=1),
        ArrayFeed(LISTS, SEVERAL, rows=9, classes=7, batch=5),
        ArrayFeed(LISTS, SEVERAL, rows=9, classes=6, batch=5, weight=WEIGHT),
        ArrayFeed([*LISTS[1:], [0]], SEVERAL, rows=9, classes=6, batch=5),
    ]
    facts = [other.describe() for other in others]
    assert feed.describe() not in facts and all(facts.count(fact) == 1 for fact in facts)
    assert ArrayFeed(LISTS, SEVERAL, rows=9, classes=6, batch=5).describe() == feed.describe()


def test_other_whole_numbers_lists_and_columns_are_the_same_examples():
    feed = ArrayFeed(IDS, TARGET, batch=5)
    assert examples(ArrayFeed(IDS.tolist(), TARGET.astype(np.uint8), batch=5)) == examples(feed)
    column = np.empty(N, object)
    column[:] = [np.array(ids) for ids in LISTS]
    assert examples(ArrayFeed(column, TARGET)) == examples(ArrayFeed(LISTS, TARGET))
    means = ArrayFeed(SPARSE != 0, TARGET)
    assert all(batch.values is None for batch in means)
    bags, contexts = (ArrayFeed(ids, [0, 1], seed=None)[0] for ids in ([[1, 2], [3, 4]], np.array([[1, 2], [3, 4]])))
    assert bags.bag_at.tolist() == [0, 2, 4] and contexts.bag_at is None and (bags.ids == contexts.ids).all()
    assert ArrayFeed(np.eye(2, dtype=np.float16), [0, 1]).width == 2


BAD = {
    "found 23 inputs and 22 targets, expected as many of both": ((IDS, TARGET[1:]), {}),
    r"inputs: found float64 \(0,\), expected whole numbers": (([], []), {}),
    "inputs: found 'abc', expected an array": (("abc", [0, 1, 1]), {}),
    r"inputs\[1\]: found float64 \(1,\), expected one row of whole numbers": (([[1], [0.5]], [0, 1]), {}),
    r"inputs\[1\]\[0\]: found 3, expected 0 to 2": (([[1], [3]], [0, 1]), {"rows": 3}),
    r"inputs\[0\]\[0\]: found 4294967296, expected 0 to": (([[2**32]], [0]), {}),
    "rows: found 4, expected None": ((DENSE, TARGET), {"rows": 4}),
    r"inputs\[\d+\]: found \d, expected 0 to 2": ((IDS, TARGET), {"rows": 3}),
    r"target\[\d+\]: found \d, expected 0 to 1": ((IDS, TARGET), {"classes": 2}),
    "classes: found 1, at least 2 needed": (([1, 2], [0, 0]), {}),
    "rows: found 8, expected 7 as the columns of the matrix": ((SPARSE, TARGET), {"rows": 8}),
    r"weight: found int64 \(1,\), expected a number for": ((IDS, TARGET), {"weight": [1]}),
    r"weight\[1\]: found -1, expected": (([1, 2], [0, 1]), {"weight": [1, -1]}),
}


@pytest.mark.parametrize("message", BAD)
def test_refusals(message):
    given, options = BAD[message]
    with pytest.raises(IndexError if "expected 0 to" in message else ValueError, match=message):
        ArrayFeed(*given, **options)
