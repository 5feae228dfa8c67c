"""A logistic regression's dual solution against the minimum of the primal in float64, and against LIBLINEAR."""

import numpy as np
import pytest
from scipy import optimize, sparse
from sklearn.linear_model import LogisticRegression

from cpu.sparse_label_tree import solve


@pytest.fixture(scope="module")
def problem():
    rng = np.random.default_rng(0)
    x = sparse.random_array((60, 12), density=0.4, rng=rng, dtype=np.float32, format="csr")
    return x, rng.random(60) < 0.3, rng.choice([0, 0.5, 2, 30], 60).astype(np.float32)


def solved(x, positive, bound, tolerance=1e-3, passes=10_000, seed=3):
    squares = 1 + x.multiply(x).sum(axis=1).astype(np.float32)
    w = np.full(x.shape[1] + 1, np.nan)
    given = x.indptr.astype(np.int64), x.indices, x.data, squares, positive, bound
    return w, solve(w, *given, tolerance, passes, np.uint64(seed))


def loss(w, x, positive, bound):
    score = x @ w[:-1] + w[-1]
    return w @ w / 2 + bound.astype(float) @ np.logaddexp(0, np.where(positive, -score, score))


def test_it_is_the_minimum_of_the_primal(problem):
    w, passes = solved(*problem)
    x, positive, bound = problem
    found = optimize.minimize(loss, np.zeros(13), (x.astype(float), positive, bound), tol=1e-12)
    np.testing.assert_allclose(w, found.x, atol=2e-3)
    assert loss(w, *problem) < found.fun * (1 + 1e-6) and 1 < passes < 10_000


def test_it_is_that_of_liblinear(problem):
    x, positive, _ = problem
    w, _ = solved(x, positive, np.full(60, 4, np.float32))
    rival = LogisticRegression(solver="liblinear", C=4, tol=1e-8, max_iter=10_000).fit(x, positive)
    np.testing.assert_allclose(w, [*rival.coef_[0], rival.intercept_[0]], atol=2e-3)


def test_it_ends_when_told_and_is_a_function_of_its_seed(problem):
    first, passes = solved(*problem, passes=2)
    assert passes == 2
    np.testing.assert_array_equal(first, solved(*problem, passes=2)[0])
    assert not np.array_equal(first, solved(*problem, passes=2, seed=4)[0])
    assert loss(first, *problem) > loss(solved(*problem)[0], *problem)


def test_it_takes_the_passes_that_it_says(problem):
    w, passes = solved(*problem)
    for most in (passes, passes - 1, passes - 2):  # the last one finds nothing to move
        again, found = solved(*problem, passes=most)
        assert found == most and np.array_equal(again, w) == (most > passes - 2)
