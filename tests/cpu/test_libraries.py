"""What every library of indexes does behind the contract of cpu/search/libraries.py."""

import json

import numba
import numpy as np
import pytest

from cpu.output.topk import Excluded
from cpu.search import index, libraries
from cpu.search.libraries import LIBRARIES
from cpu.search.neighbours import Neighbours
from tests.support.neighbours import clustered, nearest

VECTORS, HIDDEN = clustered(2000, 16), clustered(40, 16, seed=1)
SIZE = {"annoy": 20, "faiss": 32}  # others: links
LITTLE = {"annoy": 200, "faiss": 1}


def of(kind):
    reason = f"{LIBRARIES[kind].module} is not installed: pip install {LIBRARIES[kind].extra}"
    return pytest.param(kind, marks=pytest.mark.skipif(not libraries.there(kind), reason=reason))


every_kind = pytest.mark.parametrize("kind", [of(kind) for kind in LIBRARIES])
every_metric = pytest.mark.parametrize("metric", ["angular", "dot"])


def made(kind, metric="dot", seed=0, size=None, vectors=VECTORS):
    return libraries.make(kind, vectors, metric, size or SIZE.get(kind, 16), seed, 1)


def table(kind, vectors, metric="dot"):
    """An index that misses few, in use."""
    more = {"trees": 40, "search": 20000} if kind == "annoy" else {"effort": 2000}
    near = Neighbours(vectors, metric=metric, index=kind, exact_below=0, **more)
    near.build()
    return near


def query(near, hidden, k, without=None):
    ids, scores = index.empty(len(hidden), k, np.float32)
    near.query(ids, scores, hidden, without)
    return ids, scores


@every_kind
@every_metric
def test_more_effort_finds_more_and_scores_are_true(kind, metric):
    truth, recalls = nearest(VECTORS, HIDDEN, 10, metric)[0], []
    for effort in (LITTLE.get(kind, 10), 4000):
        ids, scores = index.empty(40, 10, np.float32)
        index.search(ids, scores, VECTORS, HIDDEN, metric, made(kind, metric), effort)
        recalls.append(index.recall(truth, ids))
        dots = np.einsum("bd,bkd->bk", HIDDEN.astype(float), VECTORS[ids])
        if metric == "angular":
            dots /= np.linalg.norm(HIDDEN, axis=1)[:, None] * np.linalg.norm(VECTORS[ids], axis=2)
        np.testing.assert_allclose(scores, dots, rtol=1e-4, atol=1e-5)
    assert recalls[0] < recalls[1] and recalls[1] > 0.95


@every_kind
def test_a_batch_is_answered_as_its_queries_alone_at_any_number_of_threads(kind, threads):
    one = made(kind)
    together = one.propose(HIDDEN, 10, 20)
    assert together.shape == (40, 10) and together.dtype == np.int32
    np.testing.assert_array_equal(np.concatenate([one.propose(row[None], 10, 20) for row in HIDDEN]), together)
    assert one.propose(HIDDEN[:0], 10, 20).shape == (0, 10)
    before, twice = numba.get_num_threads(), one.propose(HIDDEN.astype(np.float64), 10, 20)
    np.testing.assert_array_equal(twice, together)
    assert numba.get_num_threads() == before


@every_kind
def test_the_same_seed_gives_the_same_answers(kind):
    little = {"annoy": 2, "faiss": 32}.get(kind, 4)
    first, again, other = (made(kind, seed=seed, size=little).propose(HIDDEN, 10, 10) for seed in (3, 3, 4))
    np.testing.assert_array_equal(first, again)
    assert (first != other).any()


@every_kind
def test_of_fewer_rows_than_are_asked_for_the_rest_is_none(kind):
    proposed = made(kind, vectors=VECTORS[:5].copy()).propose(HIDDEN, 9, 100)
    assert proposed.max() < 5 and (proposed[:, 5:] == -1).all()


@every_kind
@every_metric
def test_what_is_excluded_is_not_found(kind, metric):
    near = table(kind, VECTORS, metric)
    truth = nearest(VECTORS, HIDDEN, 30, metric)[0]
    at = np.arange(len(HIDDEN) + 1) * 20
    left_out = np.sort(truth[:, :20], axis=1).astype(np.int32).ravel()
    ids, _ = query(near, HIDDEN, 10, Excluded(at[:-1], at[1:], left_out))
    assert index.recall(truth[:, 20:], ids) > 0.95
    assert not (ids[:, :, None] == truth[:, None, :20]).any()


@every_kind
@every_metric
def test_a_saved_index_answers_as_before(kind, metric, tmp_path):
    path = str(tmp_path / "near")
    near = table(kind, VECTORS, metric)
    near.save(path)
    again = Neighbours(VECTORS, metric=metric, index=kind)
    again.load(path)
    assert again.built
    for one, other in zip(query(near, HIDDEN, 10), query(again, HIDDEN, 10), strict=True):
        np.testing.assert_array_equal(one, other)


@pytest.mark.parametrize("kind", [of("hnsw")])
def test_an_index_of_other_rows_or_of_another_kind_is_not_loaded(kind, tmp_path):
    path = str(tmp_path / "near")
    vectors = VECTORS.copy()
    near = Neighbours(vectors, metric="dot", index=kind, exact_below=0)
    with pytest.raises(ValueError, match="index: found none, as search is exact"):
        near.save(path)
    near.build()
    near.save(path)
    near.changed(np.array([4]))
    with pytest.raises(ValueError, match="index: found 1 rows that have changed since it was built"):
        near.save(path)
    for other, message in (
        (Neighbours(vectors, metric="dot", index="exact"), "found kind 'hnsw'; expected exact"),
        (Neighbours(vectors, metric="angular", index=kind), "found metric 'dot'; expected angular"),
        (Neighbours(VECTORS[1:], metric="dot", index=kind), "found an index of other rows"),
    ):
        with pytest.raises(ValueError, match=message):
            other.load(path)
        assert not other.built
    facts = json.loads((tmp_path / "near.json").read_text())
    (tmp_path / "near.json").write_text(json.dumps(facts | {"format": 3}))
    with pytest.raises(ValueError, match="found format 3; expected 2"):
        near.load(path)
    (tmp_path / "near.json").write_text(json.dumps(facts))
    (tmp_path / "near").write_bytes((tmp_path / "near").read_bytes()[:-1])  # of which a library may crash
    with pytest.raises(ValueError, match="near: found a file changed since it was saved"):
        near.load(path)


@pytest.mark.parametrize("kind", LIBRARIES)
def test_without_its_library_an_index_is_refused_by_its_extra_and_auto_does_without(monkeypatch, kind):
    monkeypatch.setattr(libraries, "there", lambda kind: False)
    with pytest.raises(ValueError, match=rf'index "{kind}": needs {LIBRARIES[kind].module}.*"hybrid-engine\[\w+\]"'):
        Neighbours(VECTORS, index=kind)
    monkeypatch.setattr(index, "SIZES", ((kind, 8),))
    near = Neighbours(VECTORS, index="auto", exact_below=0)
    near.build()
    assert near.choice.kind == "exact" and near.choice.tried == ()


@pytest.mark.parametrize("kind", [*LIBRARIES, "exact"])
def test_a_recall_that_would_be_ignored_is_refused(kind):
    said = f'recall: found 0.9 with index "{kind}", expected none: .*"auto" alone reaches a recall'
    with pytest.raises(ValueError, match=said):
        Neighbours(VECTORS, index=kind, recall=0.9)
