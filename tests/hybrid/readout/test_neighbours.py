"""A readout under an index of neighbours: what it finds, when it is built anew, and what it is worth."""

import json

import numpy as np
import pytest

from hybrid import SGD, SampledSoftmax
from hybrid.readout import NeighbourReadout, SampledReadout, make, rebuild


def batch(classes=3000, width=16, rows=32, seed=0):
    rng = np.random.default_rng(seed)
    hidden = rng.normal(size=(rows, width)).astype(np.float32)
    return np.empty_like(hidden), hidden, rng.integers(0, classes, rows).astype(np.int32)


@pytest.fixture
def indexed():
    """A sampled readout of weights as training leaves them, in groups, under a forest."""
    inner = SampledReadout(3000, 16, batch=32, optimiser=SGD(0.1), loss=SampledSoftmax(64))
    rng = np.random.default_rng(0)
    centres = rng.normal(size=(150, 16))
    inner.weights[:] = centres[rng.integers(0, 150, 3000)] + 0.3 * rng.normal(size=(3000, 16))
    readout = NeighbourReadout(inner, index="annoy", exact_below=0)
    readout.build()
    return readout


def test_classes_that_learned_since_are_found(indexed):
    """Targets and negatives of a step are searched exactly until the next index; their logits are the new ones."""
    grad, hidden, target = batch()
    for _ in range(30):
        indexed.step(grad, hidden, target)
    np.testing.assert_array_equal(indexed.best(hidden, 1)[0], indexed.readout.best(hidden, 1)[0])
    stale = indexed._neighbours._changed.copy()
    assert stale[target].all() and not stale.all()
    indexed.rebuild().result(30)
    assert not indexed._neighbours._changed.any()


def test_after_a_restore_the_search_is_exact(indexed):
    indexed.readout.weights[:] *= -1
    indexed.restore(indexed.state())
    assert indexed.recall(batch()[1], 10) == 1


def test_a_rebuild_that_fails_is_told_once_and_training_goes_on(monkeypatch, capsys):
    from cpu.search import libraries

    def fail(*given):
        raise MemoryError("no room")

    inner = SampledReadout(60, 4, batch=8, optimiser=SGD(0.1), loss=SampledSoftmax(3))
    readout = NeighbourReadout(inner, exact_below=0, index="annoy", trees=2)
    monkeypatch.setattr(libraries, "make", fail)
    for seed in range(3):
        grad, hidden, target = batch(60, 4, 8, seed)
        readout.step(grad, hidden, target)
        readout.rebuild().exception()
    assert capsys.readouterr().err.count("neighbours: the index was not rebuilt: no room") == 2


def test_figures_of_the_index_on_the_hidden_vectors_that_were_met_last(indexed):
    _, hidden, target = batch()
    assert indexed.figures() == {}
    indexed.log_prob(hidden, target)
    told = indexed.figures()
    assert told["neighbours recall@10"] == pytest.approx(indexed.recall(hidden, 10))
    assert min(told["neighbours queries/s"], told["exact queries/s"]) > 0
    indexed.send()  # other weights: as it stands, the search is exact
    assert indexed.figures(build=False)["neighbours recall@10"] == 1 and not indexed._neighbours.built


def test_options_name_a_readout_of_neighbours():
    given = {"negatives": None, "rate": 0.1, "seed": 3, "readout_optimiser": "adagrad", "recall": 0.9}
    made = make("neighbours", np.ones(9), 6, given, batch=4)
    assert isinstance(made, NeighbourReadout) and type(made.readout) is SampledReadout
    facts = made.describe()
    assert {"index": "auto", "recall": 0.9}.items() <= facts.items()
    assert facts["readout"]["optimiser"] == "adagrad" and rebuild(facts).describe() == facts
    assert NeighbourReadout(made.readout, index="auto").describe()["recall"] == 0.95
    described = NeighbourReadout(made.readout, threads=np.int64(2), exact_below=np.int32(0)).describe()
    assert json.loads(json.dumps(described)) == described
    for wrong, message in (
        ({"recall": 2.0}, "recall: found 2.0, expected a number above 0, at most 1"),
        ({"biases": True}, "readout: found one with biases"),
    ):
        with pytest.raises(ValueError, match=message):
            make("neighbours", np.ones(9), 6, given | wrong, batch=4)
