import numpy as np
import pytest
from scipy import sparse

import hybrid
from cpu.search import index as indexes
from cpu.search import libraries

RNG = np.random.default_rng(0)
VECTORS = RNG.normal(size=(400, 8)).astype(np.float32)
HIDDEN = RNG.normal(size=(30, 8)).astype(np.float32)


def oracle(vectors, k=5):
    return np.argsort(-(HIDDEN.astype(float) @ vectors.T.astype(float)), axis=1)[:, :k]


HNSW = pytest.mark.skipif(not libraries.there("hnsw"), reason="hnswlib is not installed: make test-all")


@pytest.mark.parametrize("index", ["annoy", pytest.param("hnsw", marks=HNSW), "exact", "auto"])
def test_the_nearest_of_ones_own_vectors(index, capsys, monkeypatch):
    monkeypatch.setattr(indexes, "SIZES", (("annoy", 2),))
    vectors = VECTORS.copy()
    queries = {"queries": HIDDEN} if index == "auto" else {}
    found = hybrid.Neighbours(vectors, metric="dot", index=index, exact_below=0, k=5, **queries)
    assert len(found) == 400 and found.vectors is vectors
    ids, scores = found.query(HIDDEN, 5)
    assert np.mean([np.isin(a, b).mean() for a, b in zip(oracle(vectors), ids, strict=True)]) >= 0.95
    np.testing.assert_allclose(scores, np.einsum("bd,bkd->bk", HIDDEN, vectors[ids]), rtol=1e-4)
    as_csr = found.neighbours(HIDDEN, 5)
    np.testing.assert_array_equal(as_csr.indices.reshape(30, 5), ids)
    assert as_csr.shape == (30, 400) and as_csr.data.dtype == np.float32
    assert found.figures(HIDDEN, 5).line().startswith("recall@5 ")
    assert found.figures(HIDDEN).line().startswith("recall@10 ")
    assert ("neighbours, index auto: " in capsys.readouterr().err) == (index == "auto") == (found.choice is not None)


@pytest.mark.parametrize("rows, said", [(400, True), (100, False)])
def test_without_annoy_all_rows_are_searched_and_a_sentence_says_so_of_many(monkeypatch, capsys, rows, said):
    monkeypatch.setattr(libraries, "there", lambda kind: False)
    found = hybrid.Neighbours(VECTORS[:rows], metric="dot", index="annoy", exact_below=200)
    np.testing.assert_array_equal(found.query(HIDDEN, 5)[0], oracle(VECTORS[:rows]))
    assert ('annoy is not installed, all rows are searched; pip install "hybrid' in capsys.readouterr().err) is said


def test_bad_input():
    for wrong, message in (
        ({"queries": HIDDEN[:, :3], "index": "auto"}, r"queries: found \(30, 3\), expected \(any, 8\)"),
        ({"index": "exact", "queries": HIDDEN}, 'queries: found some with index "exact", expected none'),
        ({"index": "hnsw", "trees": 3}, 'trees: not used by index "hnsw"; leave it out'),
        ({"index": "auto", "links": 3}, 'links: not used by index "auto"; leave it out'),
    ):
        with pytest.raises(ValueError, match=message):
            hybrid.Neighbours(VECTORS, **wrong)
    found = hybrid.Neighbours(VECTORS)
    with pytest.raises(ValueError, match="k: found 401, expected a whole number from 1 to 400"):
        found.query(HIDDEN, 401)
    with pytest.raises(ValueError, match=r"exclude: found \(30, 9\)"):
        found.query(HIDDEN, 4, sparse.csr_array((30, 9)))
    with pytest.raises(IndexError):
        found.changed([400])
    with pytest.raises(ValueError, match="hidden: found no query"):
        found.figures(HIDDEN[:0])


@HNSW
def test_a_saved_index_is_taken_in_place_of_a_build(tmp_path, monkeypatch):
    monkeypatch.setattr(indexes, "SIZES", (("hnsw", 8),))
    monkeypatch.setattr(indexes, "GAIN", np.inf)  # however slow, it is taken
    near = hybrid.Neighbours(VECTORS, metric="dot", index="auto", exact_below=0)
    near.save(tmp_path / "near")
    with monkeypatch.context() as failing:
        failing.setattr("json.dump", lambda *_: (_ for _ in ()).throw(OSError("no space")))
        with pytest.raises(OSError, match="no space"):  # the file of before stays, and no part of another
            near.save(tmp_path / "near")
    assert {path.name for path in tmp_path.iterdir()} == {"near", "near.json"}
    monkeypatch.setattr(libraries, "make", None)
    again = hybrid.Neighbours.load(tmp_path / "near", VECTORS, metric="dot", index="auto")
    np.testing.assert_array_equal(again.query(HIDDEN, 5)[0], near.query(HIDDEN, 5)[0])
    assert again.choice == near.choice
