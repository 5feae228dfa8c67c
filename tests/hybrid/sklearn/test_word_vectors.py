"""WordVectors as a transformer of scikit-learn."""

import pickle

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.utils import estimator_checks

from hybrid.sklearn import WordVectors

SMALL = {"width": 16, "min_count": 1, "sample": 0, "epochs": 3, "random_state": 0}


def two_topics(documents=300, seed=0):
    """Documents of five words of one of two topics, and which it is."""
    rng = np.random.default_rng(seed)
    topic = rng.integers(0, 2, documents)
    return [" ".join(f"{'Ab'[t]}{word}" for word in rng.integers(0, 20, 5)) for t in topic], topic


@pytest.mark.parametrize(
    "check",
    [
        "check_parameters_default_constructible",
        "check_no_attributes_set_in_init",
        "check_estimator_repr",
        "check_get_params_invariance",
        "check_set_params",
        "check_valid_tag_types",
        "check_mixin_order",
        "check_estimator_tags_renamed",
        "check_do_not_raise_errors_in_init_or_set_params",
    ],
)
def test_it_is_an_estimator(check):
    """The checks that need no data: all others are of matrices, and for documents scikit-learn leaves them out."""
    getattr(estimator_checks, check)("WordVectors", WordVectors())


@pytest.mark.parametrize("model", ["skipgram", "cbow"])
@pytest.mark.parametrize("readout", ["tree", "sampled"])
def test_words_of_one_topic_are_near_each_other(model, readout):
    vectors = WordVectors(model=model, readout=readout, **SMALL | {"epochs": 20, "rate": 0.05}).fit(two_topics()[0])
    assert vectors.vectors_.shape == (40, 16) and len(vectors.losses_) == 20
    assert vectors.losses_[-1] < vectors.losses_[0]
    unit = vectors.vectors_ / np.linalg.norm(vectors.vectors_, axis=1, keepdims=True)
    first = np.array([word[0] == "a" for word in vectors.words_])  # made lower case
    same = first[:, None] == first
    cosine = unit @ unit.T
    assert cosine[same].mean() > cosine[~same].mean() + 0.2


def test_a_document_is_the_mean_of_its_words():
    vectors = WordVectors(**SMALL).fit([["x", "y", "z"], ["y", "x"], "x y", "z z"])
    of = dict(zip(vectors.words_, vectors.vectors_, strict=True))
    found = vectors.transform([["x", "y", "unknown", "y"], "Z", [], "nothing known"])
    np.testing.assert_allclose(found[0], (of["x"] + 2 * of["y"]) / 3, atol=1e-7)
    np.testing.assert_allclose(found[1], of["z"], atol=1e-7)
    assert not found[2:].any() and found.dtype == np.float32 and found.shape == (4, 16)
    assert vectors.get_feature_names_out().tolist() == [f"wordvectors{i}" for i in range(16)]


def test_it_stands_in_pipelines_and_is_searched():
    documents, topic = two_topics()
    pipeline = make_pipeline(WordVectors(**SMALL | {"epochs": 30, "rate": 0.05}), LogisticRegression())
    assert pipeline.fit(documents[:200], topic[:200]).score(documents[200:], topic[200:]) > 0.9
    search = GridSearchCV(pipeline, {"wordvectors__window": [2, 5]}, cv=2).fit(documents[:100], topic[:100])
    assert search.best_params_["wordvectors__window"] in (2, 5)


def test_the_same_at_any_number_of_threads_and_from_a_pickle():
    documents, _ = two_topics(50)
    models = [WordVectors(n_jobs=n_jobs, **SMALL).fit(documents) for n_jobs in (None, 2)]
    models += [pickle.loads(pickle.dumps(models[0])), clone(models[0]).fit(documents)]
    assert len({model.transform(documents).tobytes() for model in models}) == 1


def test_progress_is_shown_where_it_is_asked_for(capsys):
    WordVectors(**SMALL).fit(["x y", "y z"])
    assert capsys.readouterr().err == ""
    WordVectors(verbose=1, **SMALL).fit(["x y", "y z"])
    assert "fit: 100 %" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("X", "message"),
    [
        ("one string", "X: found str, expected documents"),
        (3, "X: found int, expected documents"),
        ([1, 2], "X: found a document with 1, expected strings"),
        ([["a", 2]], "X: found a document with 2"),
        (["a a a"], "1 word occurs at least once in X"),
    ],
)
def test_what_is_no_list_of_documents_is_refused(X, message):
    with pytest.raises(ValueError, match=message):
        WordVectors(**SMALL).fit(X)


def test_before_fit_there_is_nothing_to_transform_with():
    with pytest.raises(NotFittedError):
        WordVectors().transform(["a"])
    with pytest.raises(ValueError, match="tokens: found 'letters'"):
        WordVectors(tokens="letters").fit(["a b"])
