"""SparseLabelTreeClassifier as a classifier of scikit-learn, with any number of labels an example."""

import numpy as np
import pytest
from scipy import sparse
from sklearn.datasets import make_multilabel_classification
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.multiclass import OneVsRestClassifier
from sklearn.pipeline import make_pipeline
from sklearn.utils.estimator_checks import parametrize_with_checks

from hybrid.formats import fasttext
from hybrid.sklearn import SparseLabelTreeClassifier
from tests.data import real

ORDER = "a repeated example is visited twice in a pass, a weighted one once: both end near the optimum"
EXPECTED = {
    "check_sample_weight_equivalence_on_dense_data": ORDER,
    "check_sample_weight_equivalence_on_sparse_data": ORDER,
}


@parametrize_with_checks([SparseLabelTreeClassifier(random_state=0)], expected_failed_checks=lambda estimator: EXPECTED)
def test_it_is_an_estimator(estimator, check):
    check(estimator)


@pytest.fixture(scope="module")
def data():
    X, y = make_multilabel_classification(400, 12, n_classes=9, n_labels=3, random_state=0)
    X = X / np.linalg.norm(X, axis=1, keepdims=True)
    return X[:300], y[:300], X[300:], y[300:]


def test_under_a_flat_tree_it_is_one_against_the_rest(data):
    X, y, X_test, _ = data
    flat = [-1] + [0] * 9, np.arange(1, 10)
    settings = {"tree": flat, "tolerance": 1e-3, "passes": 1000, "least": 0}
    found = SparseLabelTreeClassifier(**settings).fit(X, y).predict_proba(X_test)
    some = y.any(axis=1)  # who has no label teaches the root alone
    root = LogisticRegression(solver="liblinear", C=10, tol=1e-6).fit(X, some)
    rest = OneVsRestClassifier(LogisticRegression(solver="liblinear", C=10, tol=1e-6)).fit(X[some], y[some])
    np.testing.assert_allclose(found, root.predict_proba(X_test)[:, 1:] * rest.predict_proba(X_test), atol=2e-3)


def test_answers_have_the_form_of_y_and_weights_leave_out(data):
    X, y, X_test, y_test = data
    model = SparseLabelTreeClassifier(trees=2, leaves=4, random_state=0)
    dense, csr = (model.fit(given, y).predict(X_test) for given in (X, sparse.csr_array(X)))
    np.testing.assert_array_equal(dense, csr)
    lists = [[f"label {label}" for label in np.flatnonzero(row)] for row in y]
    assert isinstance(model.fit(X, lists).predict(X_test)[0], list)
    assert model.score(X_test, [[f"label {label}" for label in np.flatnonzero(row)] for row in y_test]) > 0.7
    assert (np.diff(model.predict_proba(X_test, k=3).indptr) == 3).all()
    half = np.arange(300) % 2
    one = model.fit(X, y, sample_weight=half).predict_proba(X_test)
    assert abs(one - model.fit(X, y).predict_proba(X_test)).max() > 0.05


def test_a_refused_fit_leaves_a_fitted_model_as_it_was(data):
    X, y, X_test, _ = data
    model = SparseLabelTreeClassifier(random_state=0).fit(X, y)
    expected = model.predict_proba(X_test)
    for change, message in (({"tree": "oak"}, "tree: found 'oak'"), ({"C": -1}, "C: found -1")):
        with pytest.raises(ValueError, match=message):
            model.set_params(**{"tree": "clusters"} | change).fit(X[:, :5], y[:, :4])
    np.testing.assert_array_equal(model.predict_proba(X_test), expected)


def test_questions_about_cooking_are_labelled():
    train, test = (fasttext.load(real(f"labels/cooking.{part}")) for part in ("train", "valid"))
    pipeline = make_pipeline(TfidfVectorizer(), SparseLabelTreeClassifier(random_state=0, n_jobs=-1))
    assert pipeline.fit(train.texts, train.labels).score(test.texts, test.labels) >= 0.675
