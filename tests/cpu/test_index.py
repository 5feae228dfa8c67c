"""Indexes of both kinds, and the choice among them; cpu/search/neighbours.py uses them."""

import numpy as np
import pytest

pytest.importorskip("annoy", reason="Annoy is not installed: it is built where a C++ compiler is")

from cpu.search import index
from cpu.search.index import Choice, Graph, choose
from cpu.search.neighbours import Neighbours


def clustered(rows, width=16, seed=0):
    """Vectors as training leaves them: in groups, of very different lengths."""
    rng = np.random.default_rng(seed)
    centres = rng.normal(size=(rows // 20 + 1, width))
    vectors = centres[rng.integers(0, len(centres), rows)] + 0.3 * rng.normal(size=(rows, width))
    return (vectors * rng.lognormal(0, 0.7, (rows, 1))).astype(np.float32)


def query(found, hidden, k=10):
    ids, scores = index.empty(len(hidden), k, np.float32)
    found.query(ids, scores, hidden)
    return ids, scores


VECTORS, HIDDEN = clustered(2000), clustered(40, seed=1)

hnsw = pytest.mark.skipif(not index.there("hnsw"), reason="hnswlib is not installed: make test-all")


@pytest.mark.parametrize(
    ("kind", "size", "little", "metric"),
    [
        ("annoy", 20, 200, "angular"),
        ("annoy", 20, 200, "dot"),
        pytest.param("hnsw", 16, 10, "angular", marks=hnsw),
        pytest.param("hnsw", 16, 10, "dot", marks=hnsw),
    ],
)
def test_more_effort_finds_more_and_scores_are_true(kind, size, little, metric):
    made = index.make(kind, VECTORS, metric, size, seed=0, threads=1)
    dots = HIDDEN.astype(float) @ VECTORS.T.astype(float)
    if metric == "angular":
        dots /= np.linalg.norm(HIDDEN, axis=1)[:, None] * np.linalg.norm(VECTORS, axis=1)
    truth, recalls = np.argsort(-dots, axis=1)[:, :10], []
    for effort in (little, 4000):
        ids, scores = index.empty(40, 10, np.float32)
        index.search(ids, scores, VECTORS, HIDDEN, metric, made, effort)
        recalls.append(index.recall(truth, ids))
        np.testing.assert_allclose(scores, np.take_along_axis(dots, ids.astype(int), 1), rtol=1e-4, atol=1e-5)
    assert recalls[0] < recalls[1] and recalls[1] > 0.95


@hnsw
def test_a_graph_answers_alike_at_any_number_of_threads(threads):
    first, again, other = (Graph(VECTORS, "dot", 4, seed, 1) for seed in (3, 3, 4))
    found = first.propose(HIDDEN, 10, 10)
    np.testing.assert_array_equal(found, again.propose(HIDDEN, 10, 10))
    assert (found != other.propose(HIDDEN, 10, 10)).any()


@pytest.mark.parametrize(
    "kind, said", [("hnsw", r"needs hnswlib.*engine\[neighbours\]"), ("annoy", r"needs annoy.*engine\[annoy\]")]
)
def test_without_its_library_an_index_is_refused_by_its_extra_and_auto_does_without(monkeypatch, kind, said):
    monkeypatch.setattr(index, "there", lambda kind: False)
    with pytest.raises(ValueError, match=f'index "{kind}": {said}'):
        Neighbours(VECTORS, index=kind)
    monkeypatch.setattr(index, "SIZES", ((kind, 8),))
    found = Neighbours(VECTORS, index="auto", exact_below=0)
    found.build()
    assert found.choice.kind == "exact"


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
    made, choice = choose(VECTORS, HIDDEN, "dot", 10, 0.9, 0, 1)
    assert isinstance(made, Graph) and (choice.kind, choice.size) == ("hnsw", 16)
    assert choice.recall >= 0.9 and choice.seconds == choice.effort / 1000 < choice.exact_seconds == 1
    ids, scores = index.empty(40, 10, np.float32)
    less = choice.effort - max(1, choice.effort // 8)
    index.search(ids, scores, VECTORS, HIDDEN, "dot", made, less)
    assert index.recall(query(Neighbours(VECTORS, metric="dot"), HIDDEN)[0], ids) < 0.93  # no more than it needs
    assert choice.line().startswith(f"hnsw, 16 links, effort {choice.effort}: recall@10 0.9")


@hnsw
def test_auto_tries_a_sample_of_many_rows_first_and_keeps_its_choice_when_built_anew(clock, monkeypatch):
    monkeypatch.setattr(index, "SAMPLE", 500)
    sizes, make = [], index.make

    def noted(kind, vectors, *given):
        sizes.append((kind, len(vectors)))
        return make(kind, vectors, *given)

    monkeypatch.setattr(index, "make", noted)
    found = Neighbours(VECTORS, metric="dot", index="auto", recall=0.9)
    found.build(HIDDEN)
    first = found.choice
    assert sizes[:3] == [("annoy", 500), ("hnsw", 500), ("hnsw", 500)] and 1 <= len(sizes[3:]) <= 2
    assert {rows for _, rows in sizes[3:]} == {2000}
    found.build(HIDDEN)
    assert (found.choice.kind, found.choice.size) == (first.kind, first.size) and len(sizes[3:]) <= 3
    assert found.recall(HIDDEN, 10) >= 0.9


def test_where_no_index_is_faster_auto_is_exact(monkeypatch):
    monkeypatch.setattr(index, "SIZES", (("annoy", 2),))
    monkeypatch.setattr(index.Trial, "_seconds", lambda *given: 1.0)
    monkeypatch.setattr(index.Trial, "_recall", lambda *given: 1.0)
    made, choice = choose(VECTORS, HIDDEN, "angular", 10, 0.9, 0, 1)
    assert made is None and choice == Choice("exact", 0, 0, 10, 1.0, 1.0, 1.0)
    assert choice.line() == "exact, 1 queries/s: no index is faster at this recall"
    assert choose(VECTORS, HIDDEN, "angular", 10, 0.9, 0, 1, before=choice)[1].kind == "exact"
