"""LabelTreeClassifier as a classifier of scikit-learn, with any number of labels an example; hybrid/sklearn/label_trees.py."""

import numpy as np
import pytest
from scipy import sparse
from sklearn.datasets import make_multilabel_classification
from sklearn.linear_model import LogisticRegression
from sklearn.multiclass import OneVsRestClassifier
from sklearn.utils.estimator_checks import parametrize_with_checks

from hybrid.sklearn import LabelTreeClassifier

SMALL = {"epochs": 5, "random_state": 0}
WEIGHTS = "a repeated example is visited twice, a weighted one once, and the order in which they are drawn is another"
EXPECTED = {
    "check_sample_weight_equivalence_on_dense_data": WEIGHTS,
    "check_sample_weight_equivalence_on_sparse_data": WEIGHTS,
}


@parametrize_with_checks([LabelTreeClassifier(**SMALL)], expected_failed_checks=lambda estimator: EXPECTED)
def test_it_is_an_estimator(estimator, check):
    check(estimator)


@pytest.fixture(scope="module")
def data():
    X, y = make_multilabel_classification(400, 12, n_classes=9, n_labels=3, random_state=0)
    return X[:300], y[:300], X[300:], y[300:]


def test_it_is_as_precise_as_one_against_the_rest(data):
    X, y, X_test, y_test = data
    model = LabelTreeClassifier(random_state=0).fit(X, y)
    rival = OneVsRestClassifier(LogisticRegression(max_iter=1000)).fit(X, y)
    theirs = y_test[np.arange(100), rival.predict_proba(X_test).argmax(axis=1)].mean()
    assert model.score(X_test, y_test) > theirs - 0.05
    assert (model.predict(X_test) == y_test).mean() > (rival.predict(X_test) == y_test).mean() - 0.03


@pytest.mark.parametrize("tree", ["clusters", ([-1] + [0] * 9, np.arange(1, 10))])
def test_answers_have_the_form_of_y_and_say_the_same(data, tree):
    X, y, X_test, _ = data
    names = np.array([f"label {number}" for number in range(9)])
    forms = {"dense": y, "csr": sparse.csr_array(y), "lists": [names[row == 1].tolist() for row in y]}
    models = {form: LabelTreeClassifier(tree=tree, **SMALL).fit(X, given) for form, given in forms.items()}
    dense, csr, lists = (models[form].predict(X_test) for form in forms)
    assert sparse.issparse(csr) and dense.shape == (100, 9) and 0 < dense.sum() < 900
    np.testing.assert_array_equal(csr.toarray(), dense)
    assert [set(row) for row in lists] == [set(names[row == 1]) for row in dense]
    for model in models.values():
        np.testing.assert_array_equal(model.predict_proba(X_test), models["dense"].predict_proba(X_test))


def test_probabilities_thresholds_and_the_likeliest_agree(data):
    X, y, X_test, y_test = data
    model = LabelTreeClassifier(**SMALL).fit(X, y)
    every = model.predict_proba(X_test)
    clear = np.abs(every - 0.5) > 1e-5
    np.testing.assert_array_equal((model.predict(X_test) == 1)[clear], (every >= 0.5)[clear])
    np.testing.assert_allclose(1 / (1 + np.exp(-model.decision_function(X_test).astype(float))), every, atol=1e-5)
    best = model.predict_proba(X_test, k=3)
    assert sparse.issparse(best) and (np.diff(best.indptr) == 3).all()
    np.testing.assert_allclose(np.sort(best.data.reshape(-1, 3)), np.sort(every)[:, -3:], rtol=1e-4)
    top = np.argsort(-every, axis=1)[:, :3]
    expected = np.take_along_axis(y_test, top, 1).mean()
    assert model.score(X_test, y_test, k=3) == pytest.approx(expected)
    np.testing.assert_array_equal(model.set_params(k=3).predict(X_test).sum(axis=1), 3)


def test_examples_without_labels_and_labels_that_are_not_known(data):
    X, y, X_test, y_test = data
    lists = [np.flatnonzero(row).tolist() for row in y]
    lists[0] = []
    model = LabelTreeClassifier(**SMALL).fit(X, lists)
    other = [[*np.flatnonzero(row), 99] for row in y_test]
    assert model.score(X_test, other) == model.score(X_test, y_test)
    with pytest.raises(ValueError, match=r"y: found .*99.*, expected one of"):
        model.partial_fit(X_test, other)


def test_partial_fit_goes_on(data):
    X, y, X_test, y_test = data
    model = LabelTreeClassifier(random_state=0)
    with pytest.raises(ValueError, match="classes: found None in the first partial_fit"):
        LabelTreeClassifier().partial_fit(X, [[1, 2]] * 300)
    for _ in range(5):
        for first in range(0, 300, 100):
            model.partial_fit(X[first : first + 100], y[first : first + 100])
    assert model.score(X_test, y_test) > 0.7
    with pytest.raises(ValueError, match=r"y: found an indicator \(300, 4\), expected 9 columns"):
        model.partial_fit(X, y[:, :4])


def test_a_refused_fit_leaves_a_fitted_model_as_it_was(data):
    X, y, X_test, _ = data
    model = LabelTreeClassifier(**SMALL).fit(X, y)
    expected = model.predict_proba(X_test)
    with pytest.raises(ValueError, match="with values other than 0 and 1"):
        model.fit(X[:, :5], y[:, :4] * 2)
    with pytest.raises(ValueError, match="tree: found 'oak'"):
        model.set_params(tree="oak").fit(X[:, :5], y[:, :4])
    np.testing.assert_array_equal(model.predict_proba(X_test), expected)
    assert len(model.classes_) == 9 and model.predict(X_test).shape == (100, 9)
