"""A classifier of any number of labels an example, as scikit-learn has them, and the forms of labels."""

import numpy as np
import pytest
from scipy import sparse
from sklearn.datasets import make_multilabel_classification
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.multiclass import OneVsRestClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MultiLabelBinarizer

from hybrid.formats import fasttext
from hybrid.sklearn import SparseLabelTreeClassifier, label_trees
from tests.data import real

SMALL = {"leaves": 4, "random_state": 0}


@pytest.fixture(scope="module")
def data():
    """Features, in rows of length 1, and labels: 300 examples to learn from, 100 others."""
    X, y = make_multilabel_classification(400, 12, n_classes=9, n_labels=3, random_state=0)
    X /= np.linalg.norm(X, axis=1, keepdims=True)
    return X[:300], y[:300], X[300:], y[300:]


@pytest.mark.parametrize("tree", ["clusters", ([-1] + [0] * 9, np.arange(1, 10))])
def test_answers_have_the_form_of_y_and_say_the_same(data, tree):
    X, y, X_test, _ = data
    forms = {"dense": y, "csr": sparse.csr_array(y)}
    models = {form: SparseLabelTreeClassifier(tree=tree, **SMALL).fit(X, given) for form, given in forms.items()}
    dense, csr = (models[form].predict(X_test) for form in forms)
    assert sparse.issparse(csr) and dense.shape == (100, 9) and 0 < dense.sum() < 900
    np.testing.assert_array_equal(csr.toarray(), dense)
    for model in models.values():
        np.testing.assert_array_equal(model.predict_proba(X_test), models["dense"].predict_proba(X_test))


def test_probabilities_thresholds_and_the_likeliest_agree(data):
    X, y, X_test, y_test = data
    model = SparseLabelTreeClassifier(**SMALL).fit(X, y)
    every = model.predict_proba(X_test)
    clear = np.abs(every - 0.5) > 1e-5
    np.testing.assert_array_equal((model.predict(X_test) == 1)[clear], (every >= 0.5)[clear])
    best = model.predict_proba(X_test, k=3)
    assert sparse.issparse(best) and (np.diff(best.indptr) == 3).all()
    np.testing.assert_allclose(np.sort(best.data.reshape(-1, 3)), np.sort(every)[:, -3:], rtol=1e-4)
    top = np.argsort(-every, axis=1)[:, :3]
    expected = np.take_along_axis(y_test, top, 1).mean()
    assert model.score(X_test, y_test, k=3) == pytest.approx(expected)
    np.testing.assert_array_equal(model.set_params(k=3).predict(X_test).sum(axis=1), 3)


def test_under_a_flat_tree_it_is_one_against_the_rest(data):
    X, y, X_test, _ = data
    flat = [-1] + [0] * 9, np.arange(1, 10)
    settings = {"tree": flat, "tolerance": 1e-3, "passes": 1000, "least": 0}
    found = SparseLabelTreeClassifier(**settings).fit(X, y).predict_proba(X_test)
    some = y.any(axis=1)  # who has no label teaches the root alone
    root = LogisticRegression(solver="liblinear", C=10, tol=1e-6).fit(X, some)
    rest = OneVsRestClassifier(LogisticRegression(solver="liblinear", C=10, tol=1e-6)).fit(X[some], y[some])
    np.testing.assert_allclose(found, root.predict_proba(X_test)[:, 1:] * rest.predict_proba(X_test), atol=2e-3)


def test_sparse_features_are_as_dense_ones_and_weights_leave_out(data):
    X, y, X_test, y_test = data
    model = SparseLabelTreeClassifier(trees=2, **SMALL)
    dense, csr = (model.fit(given, y).predict(X_test) for given in (X, sparse.csr_array(X)))
    np.testing.assert_array_equal(dense, csr)
    assert model.score(X_test, y_test) > 0.7
    half = np.arange(300) % 2
    one = model.fit(X, y, sample_weight=half).predict_proba(X_test)
    assert abs(one - model.fit(X, y).predict_proba(X_test)).max() > 0.05


def test_questions_about_cooking_are_labelled():
    train, test = (fasttext.load(real(f"labels/cooking.{part}")) for part in ("train", "valid"))
    names = MultiLabelBinarizer(sparse_output=True).fit(train.labels)
    known = [set(names.classes_).intersection(row) for row in test.labels]
    pipeline = make_pipeline(TfidfVectorizer(), SparseLabelTreeClassifier(random_state=0, n_jobs=-1))
    model = pipeline.fit(train.texts, names.transform(train.labels))
    assert model.score(test.texts, names.transform(known)) >= 0.675


# The forms of labels


DENSE = np.array([[0, 1, 1], [0, 0, 0], [1, 0, 0]])


@pytest.mark.parametrize(
    ("y", "form"),
    [
        (DENSE, "dense"),
        (DENSE.tolist(), "dense"),
        (list(DENSE), "dense"),
        (DENSE.astype(bool), "dense"),
        (sparse.csc_array(DENSE), "csr"),
    ],
)
def test_each_form_is_read_as_the_same_entries(y, form):
    found = label_trees.read(y)
    assert found.form == form and found.classes.tolist() == [0, 1, 2]
    np.testing.assert_array_equal(found.entries.toarray() != 0, DENSE != 0)


def test_one_label_each_and_names():
    found = label_trees.read(["b", "a", "b"])
    assert (found.form, found.classes.tolist()) == ("one", ["a", "b"])
    numbers = label_trees.read(np.array([3, 5, 7]))
    assert label_trees.write(numbers, sparse.csr_array(([1.0, 1.0], [2, 0], [0, 1, 2]), (2, 3))).tolist() == [7, 3]
    some = label_trees.read(["z", "a"], np.array(["a", "b"]))
    assert some.entries.toarray().tolist() == [[0, 0], [1, 0]]


@pytest.mark.parametrize(
    ("y", "classes", "message"),
    [
        (DENSE * 2, None, r"y: found an indicator \(3, 3\) with values other than 0 and 1"),
        (DENSE, np.arange(4), r"y: found an indicator \(3, 3\), expected 4 columns"),
        ([["a", "b"], ["c"]], None, "MultiLabelBinarizer"),
        ([["a", "b"], ["c", "b"]], None, "with values other than 0 and 1, expected an indicator"),
    ],
)
def test_other_forms_are_refused(y, classes, message):
    with pytest.raises(ValueError, match=message):
        label_trees.read(y, classes)
