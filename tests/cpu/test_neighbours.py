import threading
import time
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

pytest.importorskip("annoy", reason="Annoy is not installed: it is built where a C++ compiler is")

from cpu.search import brute_force, index, libraries
from cpu.search.index import Choice, choose
from cpu.search.libraries import Graph
from cpu.search.neighbours import Neighbours
from tests.support.neighbours import clustered, nearest


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


@settings(max_examples=40, deadline=None)
@given(st.integers(1, 700), st.integers(1, 300), st.integers(1, 12), st.booleans(), st.integers(0, 999))
def test_exact_search_is_the_head_of_a_sorted_list(rows, queries, k, angular, seed):
    rng = np.random.default_rng(seed)
    vectors, hidden = rng.integers(-3, 4, (rows, 3)), rng.integers(-3, 4, (queries, 3))
    vectors, hidden = vectors.astype(np.float32), hidden.astype(np.float32)  # small: many ties, many zero vectors
    k, metric = min(k, rows), "angular" if angular else "dot"
    ids, scores = np.empty((queries, k), np.int32), np.empty((queries, k), np.float32)
    brute_force.search(ids, scores, vectors, hidden, metric)
    truth, best = nearest(vectors, hidden, k, metric)
    np.testing.assert_allclose(scores, best, atol=1e-6)
    if metric == "dot":
        np.testing.assert_array_equal(ids, truth)


@pytest.mark.parametrize(("metric", "rows"), [("angular", []), ("dot", [5, 9])])
def test_every_row_that_is_proposed_is_searched(rows, metric):
    """The first and the last row too; -1 is none."""
    vectors, hidden = clustered(20, 8), clustered(5, 8, seed=1)
    proposed = np.tile(np.array([19, -1, 3, 0, -1], np.int32), (5, 1))
    ids, scores = np.empty((5, 6), np.int32), np.empty((5, 6), np.float32)
    brute_force.search(ids, scores, vectors, hidden, metric, rows=np.array(rows, np.int32), proposed=proposed)
    searched = np.array(sorted([0, 3, 19, *rows]))
    best, found = nearest(vectors[searched], hidden, 6, metric)
    np.testing.assert_array_equal(ids[:, : searched.size], searched[best])
    np.testing.assert_allclose(scores[:, : searched.size], found, rtol=1e-5, atol=1e-6)
    assert (ids[:, searched.size :] == -1).all() and np.isneginf(scores[:, searched.size :]).all()


def test_the_old_index_answers_while_a_new_one_is_built(monkeypatch):
    (vectors, found), hidden = forest(2000, 8), clustered(5, 8, seed=1)
    old, go, build, before = found._index, threading.Event(), libraries.make, vectors[7].copy()

    def wait(kind, snapshot, *more):
        assert go.wait(30)
        np.testing.assert_array_equal(snapshot[7], before)  # whatever the table has learned meanwhile
        return build(kind, snapshot, *more)

    monkeypatch.setattr(libraries, "make", wait)
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
    build, under_way, together = libraries.make, threading.Lock(), threading.Barrier(4)

    def alone(*arguments):
        assert under_way.acquire(blocking=False)
        time.sleep(0.02)
        under_way.release()
        return build(*arguments)

    def rebuild():
        together.wait(30)
        return found.rebuild()

    monkeypatch.setattr(libraries, "make", alone)
    with ThreadPoolExecutor(4) as pool:
        done = [asked.result() for asked in [pool.submit(rebuild) for _ in range(4)]]
    assert len(set(map(id, done))) == 4 and [one.result(30) for one in done] == [None] * 4


def test_search_is_exact_once_more_than_a_quarter_of_the_rows_has_changed(monkeypatch):
    vectors, hidden = clustered(2000, 8), clustered(5, 8, seed=1)
    searched, search = [], brute_force.search

    def recorded(*arguments, **more):
        searched.append("changed" if "rows" in more else "all")
        search(*arguments, **more)

    monkeypatch.setattr(brute_force, "search", recorded)
    found = Neighbours(vectors, exact_below=0)
    assert not found.built
    found.build()
    for changed, built in ((500, True), (501, False)):
        found.changed(np.arange(changed))
        query(found, hidden, 3)
        assert found.built is built
    assert searched == ["changed", "all"]


def test_bad_input():
    vectors, found = forest(2000, 8)
    with pytest.raises(ValueError, match="metric: found 'euclidean', expected one of angular, dot"):
        Neighbours(vectors, metric="euclidean")
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


# The choice among indexes

VECTORS, HIDDEN = clustered(2000, 16), clustered(40, 16, seed=1)

hnsw = pytest.mark.skipif(not libraries.there("hnsw"), reason="hnswlib is not installed: make test-all")


@pytest.fixture
def clock(monkeypatch):
    """Exact search takes a second a query; a query of an index as many thousandths as its effort."""
    monkeypatch.setattr(index, "SIZES", (("annoy", 2), ("hnsw", 4), ("hnsw", 16)))
    seconds = index.Trial._seconds

    def told(self, made, effort, times=3):
        seconds(self, made, effort, 1)
        return effort / 1000 if made else 1.0

    monkeypatch.setattr(index.Trial, "_seconds", told)


@hnsw
def test_auto_takes_the_fastest_that_reaches_the_recall(clock):
    """And says what it does on the queries that it was not chosen by."""
    made, choice = choose(VECTORS, HIDDEN, "dot", 10, 0.9, 0, 1)
    assert isinstance(made, Graph) and (choice.kind, choice.size) == ("hnsw", 16)
    assert choice.seconds == choice.effort / 1000 < choice.exact_seconds == 1

    def reached(hidden, effort):
        ids, scores = index.empty(len(hidden), 10, np.float32)
        index.search(ids, scores, VECTORS, hidden, "dot", made, effort)
        return index.recall(nearest(VECTORS, hidden, 10, "dot")[0], ids)

    assert reached(HIDDEN[::2], choice.effort) >= 0.9
    assert reached(HIDDEN[::2], choice.effort - max(1, choice.effort // 8)) < 0.93  # no more than it needs
    assert choice.recall == reached(HIDDEN[1::2], choice.effort)
    assert choice.line().startswith(f"hnsw, 16 links, effort {choice.effort}: recall@10 {choice.recall:.3f}, ")
    assert choice.line().endswith("; the fastest of annoy, hnsw, exact")


@hnsw
def test_auto_tries_a_sample_of_many_rows_first_and_keeps_its_choice_when_built_anew(clock, monkeypatch):
    monkeypatch.setattr(index, "SAMPLE", 500)
    sizes, make = [], libraries.make

    def noted(kind, vectors, *given):
        sizes.append((kind, len(vectors)))
        return make(kind, vectors, *given)

    monkeypatch.setattr(libraries, "make", noted)
    found = Neighbours(VECTORS, metric="dot", index="auto", recall=0.9)
    found.build(HIDDEN)
    first = found.choice
    assert sizes[:3] == [("annoy", 500), ("hnsw", 500), ("hnsw", 500)] and 1 <= len(sizes[3:]) <= 2
    assert {rows for _, rows in sizes[3:]} == {2000}
    found.build(HIDDEN)
    assert (found.choice.kind, found.choice.size) == (first.kind, first.size) and len(sizes[3:]) <= 3
    assert found.recall(HIDDEN[::2], 10) >= 0.9


def test_where_no_index_is_faster_auto_is_exact(monkeypatch):
    monkeypatch.setattr(index, "SIZES", (("annoy", 2),))
    monkeypatch.setattr(index.Trial, "_seconds", lambda *given: 1.0)
    monkeypatch.setattr(index.Trial, "_recall", lambda *given: 1.0)
    made, choice = choose(VECTORS, HIDDEN, "angular", 10, 0.9, 0, 1)
    assert made is None and choice == Choice("exact", 0, 0, 10, 1.0, 1.0, 1.0, ("annoy",))
    assert choice.line() == "exact, 1 queries/s: no index is faster at this recall; the fastest of annoy, exact"
    assert choose(VECTORS, HIDDEN, "angular", 10, 0.9, 0, 1, before=choice)[1].kind == "exact"
