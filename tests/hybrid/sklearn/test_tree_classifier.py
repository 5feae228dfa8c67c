"""TreeClassifier as a classifier of scikit-learn, and features as its engine takes them."""

import numpy as np
import pytest
from scipy import sparse
from sklearn.base import clone
from sklearn.datasets import load_digits, load_iris, make_blobs
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.model_selection import GridSearchCV, train_test_split
from sklearn.pipeline import make_pipeline

from hybrid.engine import Embedding
from hybrid.engine.embedding import Inputs
from hybrid.sklearn import TreeClassifier, tree_classifier

SMALL = {"epochs": 5, "random_state": 0}
FEATURES = sparse.random_array((50, 7), density=0.3, format="csr", dtype=np.float32, rng=np.random.default_rng(0))
DENSE, TARGET = FEATURES.toarray(), np.arange(50) % 3
SOURCES = {"rows": lambda: Embedding(7, 4, bags="weighted"), "numbers": lambda: Inputs(7)}


@pytest.mark.parametrize(
    ("readout", "load", "least"), [("tree", load_digits, 0.93), ("full", load_iris, 0.9), ("sampled", load_iris, 0.9)]
)
def test_its_defaults_learn_small_data(readout, load, least):
    X, y = load(return_X_y=True)
    X_train, X_test, y_train, y_test = train_test_split(X, y, random_state=0)
    model = TreeClassifier(readout, random_state=0).fit(X_train, y_train)
    assert len(model.losses_) == 20 and model.losses_[-1] < model.losses_[0]
    assert model.score(X_test, y_test) >= least


def test_a_linear_tree_is_the_logistic_regression_of_float64():
    """Of two classes there is one node: Adagrad on one row and one bias, example by example."""
    X, y = make_blobs(60, 3, centers=2, random_state=0)
    model = TreeClassifier(hidden_layers=(), epochs=1, random_state=0).fit(X, y)
    nodes = {name: array for name, array in model.engine_.parameters().items() if name.startswith("readout")}
    row, bias = nodes["readout.nodes"][0], nodes["readout.biases"][0]
    odds = np.subtract(*model.predict_log_proba(X).T[::-1])
    np.testing.assert_allclose(odds, X @ row.astype(float) + bias, rtol=1e-4, atol=1e-5)
    proba = model.predict_proba(X)
    np.testing.assert_allclose(proba[:, 1], 1 / (1 + np.exp(-odds.astype(float))), rtol=1e-4, atol=1e-7)
    np.testing.assert_array_equal(model.predict(X), proba.argmax(axis=1))


def text(documents=200, seed=0):
    rng = np.random.default_rng(seed)
    topic = rng.integers(0, 4, documents)
    return [" ".join(f"w{5 * t + rng.integers(0, 8)}" for _ in range(6)) for t in topic], np.array(list("abcd"))[topic]


@pytest.mark.parametrize("width", [16, None])
def test_sparse_text_in_a_pipeline(width):
    documents, topic = text()
    pipeline = make_pipeline(TfidfVectorizer(), TreeClassifier(width=width, hidden_layers=(), random_state=0))
    pipeline.fit(documents[:150], topic[:150])
    assert pipeline.score(documents[150:], topic[150:]) > 0.8
    X, model = pipeline[0].transform(documents[150:]), pipeline[-1]
    np.testing.assert_array_equal(model.predict(X), model.predict(X.toarray()))
    np.testing.assert_allclose(model.predict_proba(X), model.predict_proba(X.toarray()), atol=1e-6)
    if width is None:  # no table of rows: sparse and dense examples are the same numbers
        dense = clone(model).fit(pipeline[0].transform(documents[:150]).toarray(), topic[:150])
        np.testing.assert_allclose(dense.predict_proba(X), model.predict_proba(X), atol=1e-5)


def test_a_weight_of_nothing_leaves_an_example_out_and_weights_pull():
    X, y = make_blobs(100, 2, centers=2, random_state=0)
    wrong = np.arange(100) < 40
    noisy = np.where(wrong, 1 - y, y)
    model = TreeClassifier(hidden_layers=(), random_state=0)
    assert model.fit(X, noisy, np.where(wrong, 0.0, 1.0)).score(X[wrong], y[wrong]) > 0.8
    heavy = model.fit(X, np.zeros(100) + (np.arange(100) % 2), np.where(np.arange(100) % 2, 5.0, 1.0))
    assert heavy.predict_proba(X)[:, 1].mean() > 0.7


def test_partial_fit_goes_on():
    X, y = load_digits(return_X_y=True)
    model = TreeClassifier(random_state=0)
    with pytest.raises(ValueError, match="classes: found None in the first partial_fit"):
        model.partial_fit(X, y)
    for first in range(0, 1500, 100):
        model.partial_fit(X[first : first + 100], y[first : first + 100], classes=np.arange(10))
    assert model.score(X[1500:], y[1500:]) > 0.8
    with pytest.raises(ValueError, match=r"y\[0\]: found .*12.*, expected one of classes_"):
        model.partial_fit(X[:1], [12])
    with pytest.raises(ValueError, match="classes: found others"):
        model.partial_fit(X[:1], y[:1], classes=[1, 2])


OPTIONS = [
    ("tree", {"tre": "balanced"}, "found 'tre', which a tree readout does not take; expected some of .*tree"),
    ("full", {"negatives": 3}, "found 'negatives', which a full readout does not take; expected some of bias"),
    ("tree", {"batch": 3}, "options: found 'batch', which a tree readout does not take"),
    ("forest", {}, "readout: found 'forest'"),
]


@pytest.mark.parametrize(("readout", "options", "message"), OPTIONS)
def test_options_are_those_of_the_readout(readout, options, message):
    X, y = load_iris(return_X_y=True)
    model = TreeClassifier("sampled", options={"negatives": 2}, **SMALL).fit(X, y)
    assert (model.engine_.readout.negatives, model.engine_.readout.describe()["loss"]) == (2, "softmax")
    with pytest.raises(ValueError, match=message):
        TreeClassifier(readout, options=options, **SMALL).fit(X, y)


def test_a_refused_first_partial_fit_leaves_a_model_that_is_not_fitted():
    X, y = load_iris(return_X_y=True)
    model = TreeClassifier(**SMALL)
    with pytest.raises(ValueError, match="at least one non-zero number"):
        model.partial_fit(X[:, :2], y, classes=[0, 1, 2, 3], sample_weight=np.zeros(len(X)))
    assert not hasattr(model, "classes_") and not hasattr(model, "n_features_in_")
    assert model.partial_fit(X, y, classes=[0, 1, 2]).classes_.tolist() == [0, 1, 2]


def test_it_is_searched_and_goes_through_joblib():
    X, y = load_iris(return_X_y=True)
    grid = {"treeclassifier__hidden_layers": [(), (8,)]}
    search = GridSearchCV(make_pipeline(TreeClassifier(**SMALL)), grid, cv=2, n_jobs=2).fit(X, y)
    assert search.best_score_ > 0.8


def test_classes_may_be_names_and_one_is_too_few():
    X, y = load_iris(return_X_y=True)
    names = load_iris().target_names[y]
    model = TreeClassifier(random_state=0).fit(X, names)
    assert model.classes_.tolist() == sorted(set(names)) and model.score(X, names) > 0.9
    with pytest.raises(ValueError, match=r"found one class, .*'a'.*; expected at least 2 classes"):
        TreeClassifier().fit(X, np.full(len(X), "a"))


@pytest.mark.parametrize(("source", "form"), [("rows", sparse.csr_array), ("numbers", np.asarray)])
def test_questions_have_x_part_by_part(source, form, monkeypatch):
    monkeypatch.setattr(tree_classifier, "NUMBERS", 70)
    parts = []
    for question in tree_classifier.questions(SOURCES[source](), form(DENSE), 7):
        entries = (question.get(name) for name in ("values", "ids", "bag_at"))
        parts.append(question["x"] if "x" in question else sparse.csr_array(tuple(entries), (10, 7)).toarray())
    assert len(parts) == 5
    np.testing.assert_array_equal(np.concatenate(parts), DENSE)
    if source == "numbers":  # a row whose answer is larger than a part is a question of its own
        assert len([*tree_classifier.questions(SOURCES[source](), DENSE, 71)]) == FEATURES.shape[0]


def test_a_hidden_layer_of_nothing_is_refused():
    with pytest.raises(ValueError, match="hidden_layers: found 0"):
        TreeClassifier(hidden_layers=(0,)).fit(DENSE, TARGET)


def test_each_pass_has_an_order_of_its_own():
    """Three partial fits are not three times the same order; a fit begins anew."""
    model = TreeClassifier(random_state=0, batch=30)
    losses = [model.partial_fit(FEATURES, TARGET, classes=[0, 1, 2]).losses_[0] for _ in range(3)]
    assert len(set(losses)) == 3
    assert model.fit(FEATURES, TARGET).losses_ == model.fit(FEATURES, TARGET).losses_
