"""Readouts whose parameters live on the device: the numbers of the CPU's, the same bytes in every run, one checkpoint.

Here is tested hybrid/readout/base.py.
"""

import pickle

import numpy as np
import pytest
from scipy import sparse

from hybrid import SGD, Adagrad, RowAdagrad, backend
from hybrid.readout import FullReadout, NeighbourReadout, SampledReadout, rebuild
from tests import cudasim
from tests.support.readouts import BATCH, CLASSES, COUNTS, WIDTH, frozen
from tests.support.readouts import MAKE as READOUTS


def biased(kind, move):
    """So the CPU's kernels are compiled once for these and for tests/cpu/test_rule.py."""
    return lambda rate=None, **more: READOUTS[kind](optimiser=move(rate), biases=True, **more)


MAKE = {kind: READOUTS[kind] for kind in ("huffman", "balanced", "head", "full")} | {
    "huffman row-adagrad": biased("huffman", RowAdagrad),
    "head adagrad": biased("head", Adagrad),
    "full row-adagrad": biased("full", RowAdagrad),
    "full adagrad": biased("full", Adagrad),
    "full with biases": biased("full", SGD),
}
WHOLE = ["huffman row-adagrad", "full row-adagrad"]  # no tail on the CPU
FEW = [*WHOLE, "head", "head adagrad"]
# Rows of 6 numbers, a few dozen steps: sums in another order drift by some roundings a step
CLOSE = {"rtol": 1e-4, "atol": 1e-5}


@pytest.fixture(params=FEW)
def make(request):
    return MAKE[request.param]


@pytest.fixture
def cuda(gpu):
    return backend.choose("cuda:0")


def batch(rows=BATCH, seed=0):
    rng = np.random.default_rng(seed)
    hidden = rng.normal(size=(rows, WIDTH)).astype(np.float32)
    return np.full_like(hidden, np.nan), hidden, np.sort(rng.integers(0, CLASSES, rows)).astype(np.int32)


def train(readout, steps=5, first=0):
    """Losses and gradients of some steps; each batch has another number of rows."""
    found = []
    for seed in range(first, first + steps):
        grad, hidden, target = batch(rows=1 + 5 * seed % BATCH, seed=seed)
        found.append((readout.step(grad, hidden, target), grad))
    return found


def learned(readout):
    return next(iter(readout.parameters().values()))


@pytest.mark.parametrize("kind", MAKE)
def test_the_numbers_are_those_of_the_cpu(cuda, kind):
    make = MAKE[kind]
    found, expected = make(rate=0.3, backend=cuda), make(rate=0.3)
    for (loss, grad), (other, wanted) in zip(train(found, 20), train(expected, 20), strict=True):
        assert loss == pytest.approx(other, rel=1e-4)
        np.testing.assert_allclose(grad, wanted, **CLOSE)
    np.testing.assert_allclose(learned(found), learned(expected), **CLOSE)
    assert np.abs(learned(found)).max() > 0.1
    _, hidden, target = batch(rows=3 * BATCH - 1, seed=99)  # more than a batch
    np.testing.assert_allclose(found.log_prob(hidden, target), expected.log_prob(hidden, target), **CLOSE)
    np.testing.assert_allclose(found.scores(hidden), expected.scores(hidden), **CLOSE)
    for k in (3, 1, CLASSES):
        ids, log_probs = found.best(hidden, k)
        others, wanted = expected.best(hidden, k)
        assert ids.dtype == np.int32 and log_probs.dtype == np.float32
        np.testing.assert_allclose(log_probs, wanted, **CLOSE)
        assert (ids == others).mean() > 0.95  # but for ties by rounding
    exclude = sparse.csr_array(np.eye(len(hidden), CLASSES))
    for one, other in zip(found.best(hidden, 3, exclude), expected.best(hidden, 3, exclude), strict=True):
        np.testing.assert_allclose(one, other, **CLOSE)


def test_every_run_gives_the_same_bytes_in_any_order_of_completion(gpu, cuda, make):
    def trained():
        readout = make(rate=0.3, backend=cuda)
        seen = [part for step in train(readout) for part in step]
        return [*map(np.asarray, seen), *readout.parameters().values()]

    gpu.check_same_bytes(trained)


def test_a_pickle_goes_on_on_the_same_device_or_says_how_to_go_on_elsewhere(cuda, make, monkeypatch):
    readout = make(rate=0.3, backend=cuda)
    train(readout)
    kept = pickle.dumps(readout)
    other = pickle.loads(kept)
    assert other.backend is cuda and frozen(other) == frozen(readout)
    for one in (other, readout):
        train(one, first=5)
    assert frozen(other) == frozen(readout)
    monkeypatch.setattr("hybrid.backend.why_no_gpu", lambda: "there is none")
    with pytest.raises(ValueError, match=r"readout: pickled on cuda:0 .*there is none.*checkpoint \(Engine.save"):
        pickle.loads(kept)


@pytest.mark.parametrize("kind", WHOLE)
def test_sent_parameters_are_those_of_the_next_step(cuda, kind):
    readout = MAKE[kind](rate=0.0, backend=cuda)
    learned(readout)[:] = 0.5
    assert learned(readout).max() == 0  # fetched again: what is not sent is lost
    learned(readout)[:] = 0.5
    readout.send()
    train(readout, 1)
    assert (learned(readout) == 0.5).all()


def test_after_the_first_calls_nothing_is_allocated(simulated, cuda, make):
    readout = make(backend=cuda)
    grad, hidden, target = batch()

    def once():
        readout.step(grad, hidden, target)
        readout.log_prob(hidden, target)
        readout.best(hidden, 3)

    once()
    made = cudasim.calls(once)
    assert made["launch"] and not made.keys() & {"alloc", "host_alloc"}


def test_more_classes_asked_for_than_a_block_can_sort_are_refused_and_the_readout_lives_on(cuda):
    readout = FullReadout(1 << 15, 2, batch=4, backend=cuda)
    hidden = np.ones((4, 2), np.float32)
    with pytest.raises(ValueError, match="k is 32768, expected at most"):
        readout.best(hidden, 1 << 15)
    assert readout.best(hidden, 2)[0].tolist() == [[0, 1]] * 4


def test_what_computes_on_the_cpu_only_says_so(cuda):
    with pytest.raises(ValueError, match=r'backend: found "cuda:0", expected "cpu": a sampled readout .* leave it out'):
        SampledReadout(COUNTS, WIDTH, backend=cuda)
    with pytest.raises(ValueError, match='readout: found one on "cuda:0", expected one on the CPU'):
        NeighbourReadout(FullReadout(COUNTS, WIDTH, backend=cuda))
    facts = [SampledReadout(COUNTS, WIDTH).describe(), NeighbourReadout(FullReadout(COUNTS, WIDTH)).describe()]
    for told in facts:
        with pytest.raises(ValueError, match="CPU"):
            rebuild(told, cuda)


def test_classes_are_added_on_the_device_as_on_the_cpu(cuda, kind="huffman row-adagrad"):
    found, expected = MAKE[kind](rate=0.3, backend=cuda), MAKE[kind](rate=0.3)
    for readout in (found, expected):
        train(readout)
        readout.add_classes([2, 0, 1])
        train(readout)
    assert found.describe() == expected.describe()
    for name, array in found.parameters().items():
        np.testing.assert_allclose(array, expected.parameters()[name], **CLOSE, err_msg=name)
