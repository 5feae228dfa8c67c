"""What estimators share: arguments, features as an engine takes them, the engine that parameters make, and the import."""

import subprocess
import sys

import joblib
import numpy as np
import pytest
from scipy import sparse
from sklearn.utils.estimator_checks import parametrize_with_checks

from hybrid.engine import Embedding
from hybrid.engine.embedding import Inputs
from hybrid.machine import available
from hybrid.sklearn import LabelTreeClassifier, NextItem, SparseLabelTreeClassifier, TreeClassifier, base

X = sparse.random_array((50, 7), density=0.3, format="csr", dtype=np.float32, rng=np.random.default_rng(0))
DENSE, TARGET = X.toarray(), np.arange(50) % 3
SOURCES = {"rows": lambda: Embedding(7, 4, bags="weighted"), "numbers": lambda: Inputs(7)}

WEIGHTS = "a repeated example is visited twice, a weighted one once, and the order in which they are drawn is another"
EXPECTED = {f"check_sample_weight_equivalence_on_{kind}_data": WEIGHTS for kind in ("dense", "sparse")}
ESTIMATORS = [
    *(kind(epochs=5, random_state=0) for kind in (TreeClassifier, LabelTreeClassifier)),
    SparseLabelTreeClassifier(random_state=0),
    NextItem(width=8, hidden=16, readout_width=8, epochs=1, random_state=0),
]


@parametrize_with_checks(
    ESTIMATORS, expected_failed_checks=lambda estimator: {} if isinstance(estimator, NextItem) else EXPECTED
)
def test_each_is_an_estimator(estimator, check):
    check(estimator)


def dense(batch):
    """The numbers of a batch's examples."""
    if batch.x is not None:
        return batch.x
    return sparse.csr_array((batch.values, batch.ids, batch.bag_at), (batch.examples, 7)).toarray()


@pytest.mark.parametrize(("source", "form"), [("rows", np.asarray), ("numbers", sparse.csr_array)])
def test_batches_have_the_numbers_of_x_in_the_form_that_the_source_takes(source, form):
    made = base.feed(SOURCES[source](), form(DENSE), TARGET, batch=8, seed=1)
    met = []
    for tick in range(made.ticks_per_epoch):
        batch = made[tick]
        assert (batch.x is not None) == (source == "numbers") and dense(batch).dtype == np.float32
        met += [(*row, target) for row, target in zip(dense(batch).tolist(), batch.target.tolist(), strict=True)]
    assert sorted(met) == sorted((*row, target) for row, target in zip(DENSE.tolist(), TARGET.tolist(), strict=True))


@pytest.mark.parametrize(("source", "form"), [("rows", sparse.csr_array), ("numbers", np.asarray)])
def test_questions_have_x_part_by_part(source, form, monkeypatch):
    monkeypatch.setattr(base, "NUMBERS", 70)
    parts = []
    for question in base.questions(SOURCES[source](), form(DENSE), 7):
        entries = (question.get(name) for name in ("values", "ids", "bag_at"))
        parts.append(question["x"] if "x" in question else sparse.csr_array(tuple(entries), (10, 7)).toarray())
    assert len(parts) == 5
    np.testing.assert_array_equal(np.concatenate(parts), DENSE)
    if source == "numbers":  # a row whose answer is larger than a part is a question of its own
        assert len([*base.questions(SOURCES[source](), DENSE, 71)]) == X.shape[0]


def test_a_hidden_layer_of_nothing_is_refused():
    with pytest.raises(ValueError, match="hidden_layers: found 0"):
        TreeClassifier(hidden_layers=(0,)).fit(DENSE, TARGET)


def test_each_pass_has_an_order_of_its_own():
    """Three partial fits are not three times the same order; a fit begins anew."""
    model = TreeClassifier(random_state=0, batch=30)
    losses = [model.partial_fit(X, TARGET, classes=[0, 1, 2]).losses_[0] for _ in range(3)]
    assert len(set(losses)) == 3
    assert model.fit(X, TARGET).losses_ == model.fit(X, TARGET).losses_


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
