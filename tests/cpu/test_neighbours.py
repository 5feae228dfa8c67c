import threading
import time

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

pytest.importorskip("annoy", reason="Annoy is not installed: it is built where a C++ compiler is")

from cpu.search import brute_force, index
from cpu.search.neighbours import Neighbours


def clustered(rows, width, seed=0):
    """Vectors as training leaves them: in groups, of very different lengths."""
    rng = np.random.default_rng(seed)
    centres = rng.normal(size=(rows // 20 + 1, width))
    vectors = centres[rng.integers(0, len(centres), rows)] + 0.3 * rng.normal(size=(rows, width))
    return (vectors * rng.lognormal(0, 0.7, (rows, 1))).astype(np.float32)


def query(found, hidden, k):
    ids, scores = np.empty((len(hidden), k), np.int32), np.empty((len(hidden), k), np.float32)
    found.query(ids, scores, hidden)
    return ids, scores


def forest(rows, width, **options):
    """Vectors and an index of them that is built."""
    vectors = clustered(rows, width)
    found = Neighbours(vectors, exact_below=0, **options)
    found.build()
    return vectors, found


def oracle(vectors, hidden, k, metric):
    scores = hidden.astype(float) @ vectors.astype(float).T
    if metric == "angular":
        lengths = np.linalg.norm(hidden, axis=1)[:, None] * np.linalg.norm(vectors, axis=1)
        scores = np.divide(scores, lengths, out=np.zeros_like(scores), where=lengths > 0)
    ids = np.argsort(-scores, axis=1, kind="stable")[:, :k]
    return ids, np.take_along_axis(scores, ids, 1)


@settings(max_examples=40, deadline=None)
@given(
    st.integers(1, 700),
    st.integers(1, 300),
    st.integers(1, 12),
    st.sampled_from(["angular", "dot"]),
    st.integers(0, 999),
)
def test_exact_search_is_the_head_of_a_sorted_list(rows, queries, k, metric, seed):
    rng = np.random.default_rng(seed)
    vectors, hidden = rng.integers(-3, 4, (rows, 3)), rng.integers(-3, 4, (queries, 3))
    vectors, hidden = vectors.astype(np.float32), hidden.astype(np.float32)  # small: many ties, many zero vectors
    k = min(k, rows)
    ids, scores = np.empty((queries, k), np.int32), np.empty((queries, k), np.float32)
    brute_force.search(ids, scores, vectors, hidden, metric)
    truth, best = oracle(vectors, hidden, k, metric)
    np.testing.assert_allclose(scores, best, atol=1e-6)
    if metric == "dot":
        np.testing.assert_array_equal(ids, truth)


def test_exact_search_of_some_rows():
    vectors, hidden = clustered(600, 8), clustered(5, 8, seed=1)
    rows = np.arange(7, 600, 3, dtype=np.int32)
    ids, scores = np.empty((5, 4), np.int32), np.empty((5, 4), np.float32)
    brute_force.search(ids, scores, vectors, hidden, "dot", rows=rows)
    np.testing.assert_array_equal(ids, rows[oracle(vectors[rows], hidden, 4, "dot")[0]])
    brute_force.search(ids, scores, vectors, hidden, "dot", rows=rows[:2])
    assert (ids[:, 2:] == -1).all() and np.isneginf(scores[:, 2:]).all()


@pytest.mark.parametrize(("metric", "rows"), [("angular", []), ("dot", [5, 9])])
def test_every_row_that_is_proposed_is_searched(rows, metric):
    """The first and the last row too; -1 is none."""
    vectors, hidden = clustered(20, 8), clustered(5, 8, seed=1)
    proposed = np.tile(np.array([19, -1, 3, 0, -1], np.int32), (5, 1))
    ids, scores = np.empty((5, 6), np.int32), np.empty((5, 6), np.float32)
    brute_force.search(ids, scores, vectors, hidden, metric, rows=np.array(rows, np.int32), proposed=proposed)
    searched = np.array(sorted([0, 3, 19, *rows]))
    best, found = oracle(vectors[searched], hidden, 6, metric)
    np.testing.assert_array_equal(ids[:, : searched.size], searched[best])
    np.testing.assert_allclose(scores[:, : searched.size], found, rtol=1e-5, atol=1e-6)
    assert (ids[:, searched.size :] == -1).all() and np.isneginf(scores[:, searched.size :]).all()


@pytest.mark.parametrize("metric", ["angular", "dot"])
def test_the_forest_finds_most_and_scores_truly(metric):
    (vectors, found), hidden = forest(3000, 16, metric=metric), clustered(40, 16, seed=1)
    ids, scores = query(found, hidden, 10)
    truth, _ = oracle(vectors, hidden, 10, metric)
    recall = np.mean([np.isin(a, b).mean() for a, b in zip(truth, ids, strict=True)])
    assert recall > 0.9
    assert found.recall(hidden, 10) == pytest.approx(recall)
    every, all_scores = oracle(vectors, hidden, 3000, metric)
    true = np.take_along_axis(all_scores, np.argsort(every, axis=1), 1)
    np.testing.assert_allclose(scores, np.take_along_axis(true, ids.astype(np.int64), 1), rtol=1e-4, atol=1e-5)
    assert (np.diff(scores, axis=1) <= 0).all()


def test_a_row_that_changed_is_found_once():
    found, hidden = forest(3000, 16, metric="dot")[1], clustered(6, 16, seed=1)
    before, _ = query(found, hidden, 5)
    found.changed(before[:, :3].ravel())  # the forest proposes them, and they are searched exactly as well
    np.testing.assert_array_equal(query(found, hidden, 5)[0], before)


def test_the_old_index_answers_while_a_new_one_is_built(monkeypatch):
    (vectors, found), hidden = forest(2000, 8), clustered(5, 8, seed=1)
    old, go, build, before = found._index, threading.Event(), index.make, vectors[7].copy()

    def wait(kind, snapshot, *more):
        assert go.wait(30)
        np.testing.assert_array_equal(snapshot[7], before)  # whatever the table has learned meanwhile
        return build(kind, snapshot, *more)

    monkeypatch.setattr(index, "make", wait)
    done = found.rebuild()
    vectors[7] = 3 * hidden[0]  # after the snapshot: the new index does not know
    found.changed(np.array([7]))
    assert not done.done() and found._index is old
    assert query(found, hidden, 1)[0][0, 0] == 7
    go.set()
    done.result(30)
    assert found._index is not old
    assert np.flatnonzero(found._changed).tolist() == [7]
    assert query(found, hidden, 1)[0][0, 0] == 7


def test_threads_that_rebuild_at_once_take_turns(monkeypatch):
    """Each has a Future of its own, and no two indexes are built at a time."""
    found = Neighbours(clustered(200, 8), exact_below=0)
    build, under_way, together, done = index.make, threading.Lock(), threading.Barrier(4), []

    def alone(*arguments):
        assert under_way.acquire(blocking=False)
        time.sleep(0.02)
        under_way.release()
        return build(*arguments)

    def rebuild():
        together.wait(30)
        done.append(found.rebuild())

    monkeypatch.setattr(index, "make", alone)
    threads = [threading.Thread(target=rebuild) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(set(map(id, done))) == 4 and [one.result(30) for one in done] == [None] * 4


def test_search_is_exact_once_more_than_a_quarter_of_the_rows_has_changed(monkeypatch):
    vectors, hidden = clustered(2000, 8), clustered(5, 8, seed=1)
    searched, search = [], brute_force.search

    def recorded(*arguments, **more):
        searched.append("changed" if "rows" in more else "all")
        search(*arguments, **more)

    monkeypatch.setattr(brute_force, "search", recorded)
    found = Neighbours(vectors, exact_below=0)
    assert not found.built and found.moved == 1
    found.build()
    for changed, built in ((500, True), (501, False)):
        found.changed(np.arange(changed))
        query(found, hidden, 3)
        assert found.built is built and found.moved == changed / 2000
    assert searched == ["changed", "all"]


def test_the_same_seed_gives_the_same_answers():
    found = [forest(2000, 8, trees=2, search=50, seed=seed)[1] for seed in (3, 3, 4)]
    answers = [query(one, clustered(20, 8, seed=1), 10)[0].tolist() for one in found]
    assert answers[0] == answers[1] != answers[2]


def test_bad_input():
    vectors, found = forest(2000, 8, recall=1)
    with pytest.raises(ValueError, match="metric: found 'euclidean', expected one of angular, dot"):
        Neighbours(vectors, metric="euclidean")
    for recall in (0, 1.001):
        with pytest.raises(ValueError, match=f"recall: found {recall}, expected a number above 0, at most 1"):
            Neighbours(vectors, recall=recall)
    with pytest.raises(ValueError, match=r"hidden: found \(1, 7\), expected \(any, 8\)"):
        query(found, np.zeros((1, 7), np.float32), 1)
    with pytest.raises(ValueError, match=r"hidden\[1\]: found NaN or infinity"):
        query(found, np.array([[0] * 8, [np.nan] * 8], np.float32), 1)
    for wrong in (vectors.T, vectors[:, ::2], vectors[0], vectors.astype(int), vectors.tolist()):
        with pytest.raises(ValueError, match=r"vectors: found (ndarray|list).*expected a C-contiguous array"):
            Neighbours(wrong)
    old = found._index
    vectors[3, 1] = np.inf
    with pytest.raises(ValueError, match=r"vectors\[3\]: found NaN or infinity"):
        found.build()
    assert found._index is old
