"""Every public function that takes a sparse matrix refuses one whose indices point elsewhere, and takes untidy ones."""

import functools

import numpy as np
import pytest
from scipy import sparse

from hybrid import ArrayFeed, BasketFeed, FullReadout, SparseLabelTree, check, label_clusters, ratings
from hybrid import metrics as judge
from hybrid.neighbours import Neighbours
from hybrid.sklearn import NextItem, SparseLabelTreeClassifier, TreeClassifier

ROWS, COLUMNS = 12, 6
SOUND = sparse.csr_array((np.arange(ROWS)[:, None] % 4 == np.arange(COLUMNS)[None] % 4).astype(np.float32))
RANKED = np.tile(np.arange(2, dtype=np.int32), (ROWS, 1))
Tree = functools.partial(TreeClassifier, epochs=1)


@functools.cache
def fitted(make, target=None):
    return make().fit(SOUND, SOUND if target is None else np.arange(ROWS) % 2)


@functools.cache
def tree():
    return SparseLabelTree(SOUND, SOUND)


EDGES = {
    "SparseLabelTree features": lambda x: SparseLabelTree(x, SOUND),
    "SparseLabelTree labels": lambda x: SparseLabelTree(SOUND, x),
    "SparseLabelTree.best": lambda x: tree().best(x, 2),
    "SparseLabelTree.likely": lambda x: tree().likely(x, 0.5),
    "SparseLabelTree.scores": lambda x: tree().scores(x),
    "label_clusters features": lambda x: label_clusters(x, SOUND, leaves=2),
    "label_clusters labels": lambda x: label_clusters(SOUND, x, leaves=2),
    "ArrayFeed inputs": lambda x: ArrayFeed(x, np.arange(ROWS) % 2, batch=4),
    "ArrayFeed target": lambda x: ArrayFeed(np.arange(ROWS), x, batch=4),
    "BasketFeed": lambda x: BasketFeed(x, batch=4),
    "ratings.from_matrix": lambda x: ratings.from_matrix(x),
    "Readout.best": lambda x: FullReadout(COLUMNS, 3).best(np.ones((ROWS, 3), np.float32), 2, x),
    "Neighbours.query": lambda x: Neighbours(np.eye(COLUMNS, 3)).query(np.ones((ROWS, 3)), 2, x),
    "judge.precision": lambda x: judge.precision(RANKED, x),
    "judge.recall": lambda x: judge.recall(RANKED, x),
    "judge.ndcg": lambda x: judge.ndcg(RANKED, x),
    "judge.propensities": lambda x: judge.propensities(x),
    "judge.propensity_precision": lambda x: judge.propensity_precision(RANKED, x, np.ones(COLUMNS)),
    "SparseLabelTreeClassifier X": lambda x: SparseLabelTreeClassifier().fit(x, SOUND),
    "SparseLabelTreeClassifier y": lambda x: SparseLabelTreeClassifier().fit(SOUND, x),
    "SparseLabelTreeClassifier.predict": lambda x: fitted(SparseLabelTreeClassifier).predict(x),
    "SparseLabelTreeClassifier.score X": lambda x: fitted(SparseLabelTreeClassifier).score(x, SOUND),
    "SparseLabelTreeClassifier.score y": lambda x: fitted(SparseLabelTreeClassifier).score(SOUND, x),
    "TreeClassifier": lambda x: Tree().fit(x, np.arange(ROWS) % 2),
    "TreeClassifier.predict": lambda x: fitted(Tree, "classes").predict(x),
    "NextItem": lambda x: NextItem(epochs=1).fit(x),
    "NextItem.recommend": lambda x: fitted(functools.partial(NextItem, epochs=1)).recommend(x, 2),
}


def put(place, value):
    """A change of one number of an array."""
    return lambda array: np.where(np.arange(array.size) == place % array.size, value, array).astype(array.dtype)


SPOILED = {
    "index -5": ("indices", put(3, -5)),
    "index of the columns": ("indices", put(3, COLUMNS)),
    "index 10**8": ("indices", put(3, 10**8)),
    "indptr falls": ("indptr", put(3, 1)),
    "indptr beyond": ("indptr", put(-1, 10**6)),
    "indptr beyond within": ("indptr", put(5, 10**8)),
    "indptr from 1": ("indptr", put(0, 1)),
    "indptr of nothing": ("indptr", put(-1, 0)),
    "indptr too short": ("indptr", lambda array: array[:-1].copy()),
    "indptr too long": ("indptr", lambda array: np.append(array, array[-1])),
    "numbers too few": ("data", lambda array: array[:-1].copy()),
}


@pytest.mark.parametrize(
    ("edge", "spoil"),
    [*((edge, "index of the columns") for edge in EDGES), *(("SparseLabelTree features", spoil) for spoil in SPOILED)],
)
def test_a_matrix_that_points_elsewhere_is_refused(edge, spoil):
    bad, (part, change) = SOUND.copy(), SPOILED[spoil]
    setattr(bad, part, change(getattr(bad, part)))
    with pytest.raises(ValueError, match="found"):
        EDGES[edge](bad)


def untidy(x):
    """The same numbers unsorted, the first in two halves, a zero stored."""
    part = sparse.coo_array(x)
    data = np.concatenate([part.data, part.data[:1], [0]])
    data[[0, -2]] /= 2
    row, column = (np.append(one, [one[0], at])[::-1] for one, at in zip(part.coords, (0, 1), strict=True))
    at = np.searchsorted(np.sort(row), np.arange(ROWS + 1))
    order = np.argsort(row, kind="stable")
    made = sparse.csr_array((data[::-1][order], column[order], at), x.shape)
    assert not made.has_canonical_format and (made != x).nnz == 0
    return made


@pytest.mark.parametrize("edge", EDGES)
def test_a_matrix_that_is_merely_untidy_is_taken_and_left_as_it_is(edge):
    given = untidy(SOUND)
    before = [part.copy() for part in (given.data, given.indices, given.indptr)]
    if edge.endswith(" y"):  # an indicator has no halves
        given.data[:] = 1
        before[0][:] = 1
    EDGES[edge](given)
    for part, was in zip((given.data, given.indices, given.indptr), before, strict=True):
        np.testing.assert_array_equal(part, was)


@pytest.mark.parametrize(
    ("value", "message"),
    [
        (np.ma.masked_array(np.ones((2, 6)), np.eye(2, 6) > 0), "x: found a masked array, expected a plain one"),
        ([["a", "b"]], r"x: found <U1 \(1, 2\), expected numbers of two axes"),
        (SOUND.astype(complex), r"x: found complex128 \(12, 6\), expected a scipy sparse matrix .* of real numbers"),
        (SOUND[:, :5], r"x: found \(12, 5\), expected a scipy sparse matrix \(any, 6\)"),
        (sparse.csr_array(([1e300], ([2], [3])), (4, 6)), r"x\[2, 3\]: found inf, expected a finite number"),
        (sparse.csr_array((2, 2**31)), r"x: found float64 \(2, 2147483648\).* at most 2147483647 columns"),
    ],
)
def test_messages(value, message):
    with pytest.raises(ValueError, match=message):
        check.csr("x", value, (None, 6 if np.shape(value)[-1] < 10 else None), dtype=np.float32)
