"""Readouts and embeddings whose rows lie in 16 bits."""

import pickle

import numba
import numpy as np
import pytest

from cpu import halves
from hybrid import Embedding
from hybrid.readout import FullReadout, NeighbourReadout, SampledReadout, TreeReadout, make, rebuild
from tests.support.readouts import BATCH, COUNTS, WIDTH, batch, frozen, train


def tree(**more):
    return TreeReadout(COUNTS, WIDTH, batch=BATCH, rate=0.1, **{"storage": "bfloat16", **more})


def test_a_tree_learns_as_in_float32_from_half_of_the_memory():
    half, whole = tree(), tree(storage="float32")
    assert train(half, 40) == pytest.approx(train(whole, 40), rel=5e-3)
    assert half.nodes.nbytes * 2 == whole.nodes.nbytes
    np.testing.assert_allclose(halves.wide(half.nodes), whole.nodes, atol=0.05)
    assert half.parameters()["rounds"].tolist() == [40]


def test_its_questions_are_about_the_numbers_that_are_stored():
    half, whole = tree(), tree(storage="float32")
    train(half)
    whole.nodes[:] = halves.wide(half.nodes)
    _, hidden, target = batch(seed=9)
    np.testing.assert_allclose(half.log_prob(hidden, target), whole.log_prob(hidden, target), atol=1e-5)
    np.testing.assert_array_equal(half.scores(hidden), whole.scores(hidden))
    np.testing.assert_array_equal(half.best(hidden, 5)[0], whole.best(hidden, 5)[0])


def test_the_same_bytes_at_any_number_of_threads_and_from_a_checkpoint():
    found = []
    for threads in (1, 2, 4):
        numba.set_num_threads(threads)
        readout = tree()
        train(readout)
        again = rebuild(readout.describe())
        for name, array in again.parameters().items():
            np.copyto(array, readout.parameters()[name])
        again.restore(readout.state())
        copied = pickle.loads(pickle.dumps(readout))
        found += [(train(one, 3), frozen(one)) for one in (readout, again, copied)]
    assert all(one == found[0] for one in found)


def test_what_a_step_would_do_moves_no_bit():
    readout = tree()
    train(readout)
    before = frozen(readout)
    readout.still(*batch(seed=3))
    assert frozen(readout) == before


def test_an_embedding_begins_with_the_nearest_numbers_and_moves():
    half, whole = (Embedding(20, 8, seed=3, rate=0.5, storage=name) for name in ("float16", "float32"))
    np.testing.assert_array_equal(half.table, whole.table.astype(np.float16).astype(np.float32))
    ids, x, x_grad = np.array([1, 1, 7], np.int32), np.empty((3, 8), np.float32), np.full((3, 8), 0.01, np.float32)
    for one in (half, whole):
        one.backward(None, ids, x_grad, 1.0)
    np.testing.assert_allclose(half.vectors(), whole.vectors(), atol=1e-4)
    half.forward(x, None, ids)
    np.testing.assert_array_equal(x, half.table[ids])
    again = pickle.loads(pickle.dumps(half))
    for one in (half, again):
        one.backward(None, ids, x_grad, 1.0)
    assert again.parameters()["table"].tobytes() == half.parameters()["table"].tobytes()


def test_softmaxes_learn_as_in_float32():
    """A full one, and a sampled one that draws all classes: each row moves once a step, against the sum."""
    losses = []
    for kind, more in ((FullReadout, {}), (SampledReadout, {"negatives": len(COUNTS)})):
        for storage in ("bfloat16", "float32"):
            readout = kind(COUNTS, WIDTH, batch=BATCH, rate=0.05, storage=storage, **more)
            losses.append(train(readout, 40))
            assert readout.weights.dtype == halves.BITS[storage]
            before = frozen(readout)
            mean = readout.still(*batch(seed=3))
            assert mean == pytest.approx(-readout.log_prob(*batch(seed=3)[1:]).mean(), rel=1e-5)
            assert frozen(readout) == before
    assert losses == [pytest.approx(losses[0], rel=5e-3)] * 4


@pytest.mark.parametrize(
    ("made", "message"),
    [
        (lambda: tree(storage="int8"), "storage: found 'int8', expected one of float32, bfloat16, float16"),
        (lambda: NeighbourReadout(FullReadout(COUNTS, WIDTH, storage="float16")), 'found one stored as "float16"'),
        (lambda: tree(split=3), 'storage: found "bfloat16" with a split'),
        (
            lambda: make("head", COUNTS, WIDTH, {"readout_storage": "float16", "rate": 0.1, "seed": 0}, batch=4),
            "--readout-storage: not used by a head readout; leave it out",
        ),
    ],
)
def test_what_cannot_be_stored_so_is_refused(made, message):
    with pytest.raises(ValueError, match=message):
        made()


def test_the_command_line_asks_for_it():
    options = {"tree": "huffman", "mode": "deterministic", "rate": 0.1, "seed": 0}
    assert make("tree", COUNTS, WIDTH, options | {"readout_storage": "float16"}, batch=4).nodes.dtype == np.int16
    assert make("tree", COUNTS, WIDTH, options | {"readout_storage": "float32"}, batch=4).nodes.dtype == np.float32
