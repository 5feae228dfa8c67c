"""What estimators share: arguments, and the import."""

import subprocess
import sys

import joblib
import numpy as np
import pytest
from sklearn.base import clone
from sklearn.datasets import load_iris
from sklearn.utils.estimator_checks import parametrize_with_checks

from hybrid.machine import available
from hybrid.sklearn import NextItem, SparseLabelTreeClassifier, TreeClassifier, base

WEIGHTS = "a repeated example is visited twice, a weighted one once, and the order in which they are drawn is another"
EXPECTED = {f"check_sample_weight_equivalence_on_{kind}_data": WEIGHTS for kind in ("dense", "sparse")}
ESTIMATORS = [
    TreeClassifier(epochs=5, random_state=0),
    SparseLabelTreeClassifier(random_state=0),
    NextItem(width=8, hidden=16, readout_width=8, epochs=1, random_state=0),
]


@parametrize_with_checks(
    ESTIMATORS, expected_failed_checks=lambda estimator: {} if isinstance(estimator, NextItem) else EXPECTED
)
def test_each_is_an_estimator(estimator, check):
    check(estimator)


def test_n_jobs_are_threads():
    assert base.threads_of(None) == base.threads_of(1) == 1
    assert base.threads_of(-1) == available() and base.threads_of(10**6) == available()
    with joblib.parallel_config(n_jobs=2):
        assert base.threads_of(None) == min(2, available())


def test_a_random_state_is_a_seed_and_goes_on():
    state = np.random.RandomState(0)
    assert base.seed_of(0) == base.seed_of(np.random.RandomState(0)) == base.seed_of(state) != base.seed_of(state)
    with pytest.raises(ValueError, match="cannot be used to seed"):
        base.seed_of("some")


def test_without_scikit_learn_the_remedy_is_named():
    script = "import sys, hybrid; hybrid.Engine, hybrid.TreeReadout; assert 'sklearn' not in sys.modules;"
    script += "sys.modules['sklearn'] = None; import hybrid.sklearn"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert done.returncode and 'pip install "hybrid-engine[sklearn]"' in done.stderr.splitlines()[-1]


IRIS, KIND = load_iris(return_X_y=True)
LABELS = np.eye(3, dtype=int)[KIND]
TREE, LABEL_TREE = TreeClassifier(hidden_layers=(), epochs=5, random_state=0), ESTIMATORS[1]
REFUSED = [  # each at another point
    (TREE, KIND, {}, [np.linspace(0, 1, 150)], "Unknown label type"),
    (TREE, KIND, {}, [KIND + 5, np.full(150, -1.0)], "Negative values"),
    (TREE, KIND, {}, [np.zeros(150)], "found one class"),
    (TREE, KIND, {"readout": "forest"}, [KIND + 5], "readout: found 'forest'"),
    (LABEL_TREE, LABELS, {}, [2 * LABELS[:, :2]], "with values other than 0 and 1"),
    (LABEL_TREE, LABELS, {"tree": "oak"}, [LABELS[:, :2]], "tree: found 'oak'"),
    (LABEL_TREE, LABELS, {"C": -1}, [LABELS[:, :2]], "C: found -1"),
]


@pytest.mark.parametrize(("estimator", "y", "change", "given", "message"), REFUSED)
def test_a_refused_fit_leaves_a_fitted_model_as_it_was(estimator, y, change, given, message):
    model = clone(estimator).fit(IRIS, y)
    expected = model.predict_proba(IRIS)
    with pytest.raises(ValueError, match=message):
        model.set_params(**change).fit(IRIS[:, :2], *given)
    np.testing.assert_array_equal(model.predict_proba(IRIS), expected)
    assert len(model.classes_) == 3 and model.n_features_in_ == 4
