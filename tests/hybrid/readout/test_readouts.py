"""What every readout promises, by hybrid/readout/base.py."""

import copy
import functools
import itertools
import math
import pickle

import numpy as np
import pytest
from scipy import sparse

from hybrid import SGD, RowAdagrad, backend
from hybrid.readout import FullReadout, NeighbourReadout, SampledReadout, TreeReadout
from tests.support.readouts import BATCH, CLASSES, MAKE, WIDTH, batch, every, frozen, reloaded, train


@pytest.fixture(params=MAKE)
def make(request):
    return MAKE[request.param]


ONES = np.ones(BATCH, np.float32)  # without weights every kernel would be compiled again


@functools.cache
def learned(kind):
    """One with biases, after some steps; tests only ask it."""
    readout = MAKE[kind](optimiser=RowAdagrad(0.5), **({} if kind == "neighbours" else {"biases": True}))
    for seed in range(5):
        readout.step(*batch(seed=seed), ONES)
    return readout


@pytest.mark.parametrize("kind", MAKE)
def test_scores_are_all_log_probabilities_sum_to_one_and_best_is_their_head(kind):
    readout = learned(kind)
    _, hidden, _ = batch(rows=40, seed=9)  # more than a batch
    log_probs, scores = every(readout, hidden), readout.scores(hidden)
    assert (scores.shape, scores.dtype) == ((40, CLASSES), np.float32) and readout.scores(hidden[:0]).size == 0
    np.testing.assert_allclose(scores, log_probs, rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(np.exp(log_probs.astype(float)).sum(axis=1), 1, atol=1e-5)
    ids, best = readout.best(hidden, 7)
    assert ids.dtype == np.int32 and best.dtype == np.float32
    expected = -np.sort(-log_probs, axis=1)[:, :7]
    np.testing.assert_allclose(np.take_along_axis(log_probs, ids.astype(np.int64), 1), expected, atol=1e-5)
    if isinstance(readout, NeighbourReadout):  # logits: up to a constant a row
        best = best - best[:, :1] + expected[:, :1]
    np.testing.assert_allclose(best, expected, atol=1e-4)
    np.testing.assert_array_equal(np.sort(readout.best(hidden, CLASSES)[0], axis=1)[0], np.arange(CLASSES))


def some_excluded(rows, seed=0):
    """A CSR array with explicit zeros, unsorted and with entries twice: what is stored counts. And as a mask."""
    rng = np.random.default_rng(seed)
    mask = rng.random((rows, CLASSES)) < rng.random((rows, 1))
    mask[0], mask[1] = False, True
    mask[2] = np.arange(CLASSES) != 11
    columns = [rng.permutation(np.repeat(np.flatnonzero(row), 2)) for row in mask]
    at = np.cumsum([0, *map(len, columns)])
    return sparse.csr_array((np.zeros(at[-1]), np.concatenate(columns), at), (rows, CLASSES)), mask


def test_best_leaves_out_what_is_excluded(make):
    readout = make(rate=0.5)
    train(readout)
    _, hidden, _ = batch(rows=40, seed=9)  # more than a batch
    exclude, mask = some_excluded(40)
    before = exclude.indices.copy()
    every = np.where(mask, -np.inf, readout.scores(hidden))
    ids, found = readout.best(hidden, 7, exclude)
    np.testing.assert_array_equal(exclude.indices, before)
    expected = -np.sort(-every, axis=1)[:, :7]
    assert (ids.dtype, found.dtype) == (np.int32, np.float32)
    np.testing.assert_array_equal(ids < 0, np.isneginf(expected))
    np.testing.assert_array_equal(np.isneginf(found), np.isneginf(expected))
    there, told = ids >= 0, np.take_along_axis(every, np.maximum(ids, 0).astype(np.int64), 1)
    np.testing.assert_allclose(told[there], expected[there], atol=1e-5)
    if isinstance(readout, NeighbourReadout):  # logits: up to a constant a row
        with np.errstate(invalid="ignore"):
            found = found - found[:, :1] + expected[:, :1]
    np.testing.assert_allclose(found[there], expected[there], atol=1e-4)
    assert ids[2].tolist() == [11] + [-1] * 6 and (ids[1] == -1).all()
    for none in (None, sparse.csr_matrix((40, CLASSES))):
        for one, other in zip(readout.best(hidden, 7, none), readout.best(hidden, 7), strict=True):
            np.testing.assert_array_equal(one, other)


@pytest.mark.parametrize("kind", MAKE)
def test_what_a_step_would_do_is_told_without_making_it(kind):
    readout = copy.deepcopy(learned(kind))
    before = frozen(readout)
    grad, hidden, target = batch(seed=9)
    weight = np.linspace(0, 2, len(target)).astype(np.float32)
    mean, losses = readout.dry_run(grad, hidden, target, weight), readout.losses(hidden, target)
    assert mean == pytest.approx(-(weight * readout.log_prob(hidden, target)).mean(), rel=1e-4)
    h = np.float32(1e-2)
    for d in range(WIDTH):
        up, down = hidden.copy(), hidden.copy()
        up[:, d] += h
        down[:, d] -= h
        slope = (readout.log_prob(down, target) - readout.log_prob(up, target)) / (up[:, d] - down[:, d])
        np.testing.assert_allclose(grad[:, d], weight * slope, atol=6e-3)
    more = np.concatenate([hidden] * 3), np.concatenate([target] * 3)  # more than a batch
    assert readout.losses(*more).shape == (3 * len(target),) and frozen(readout) == before
    readout.rate_scale = 0.0
    assert readout.step(np.empty_like(grad), hidden, target, ONES) == pytest.approx(losses.mean(), rel=1e-5)


def test_a_checkpoint_goes_on_with_the_same_bits(make):
    readout = make(rate=0.1)
    train(readout)
    again = reloaded(readout)
    assert type(again) is type(readout) and again.describe() == readout.describe()
    assert list(again.parameters()) == list(readout.parameters())
    assert train(again, first=5) == train(readout, first=5)
    assert frozen(again) == frozen(readout)


COPIES = copy.deepcopy, copy.copy, lambda it: pickle.loads(pickle.dumps(it))


@pytest.mark.parametrize(("kind", "duplicate"), [*zip(MAKE, itertools.cycle(COPIES), strict=False)])
def test_a_copy_goes_on_with_the_same_bytes_and_shares_nothing(kind, duplicate):
    readout = MAKE[kind](rate=0.1)
    readout.rate_scale = 0.5
    train(readout)
    other = duplicate(readout)
    assert type(other) is type(readout) and other.describe() == readout.describe()
    assert frozen(other) == frozen(readout) and other.rate_scale == 0.5
    before = frozen(other)
    losses = train(readout, first=5)
    assert frozen(other) == before
    assert train(other, first=5) == losses and frozen(other) == frozen(readout)
    learned = next(iter(other.parameters().values()))
    assert learned.ctypes.data % 64 == 0 and learned.flags.writeable


def test_the_same_bits_at_any_number_of_threads(make, check_threads):
    def work():
        readout = make(rate=0.1)
        losses = np.array(train(readout))
        hidden = batch(seed=9)[1]
        return *readout.parameters().values(), losses, *readout.best(hidden, 5), readout.scores(hidden)

    check_threads(work)


def test_classes_begin_with_vectors(make):
    readout, vectors = make(rate=0.1), np.random.default_rng(3).normal(size=(CLASSES, WIDTH)).astype(np.float32)
    with pytest.raises(ValueError, match="vectors"):
        readout.begin_with(np.full_like(vectors, np.nan))
    readout.begin_with(vectors)
    for part in getattr(readout, "readouts", [readout]):
        some = np.flatnonzero(part.slot < part.head) if hasattr(part, "slot") else slice(None)  # those alone in a head
        given, arrays = vectors[some], {} if hasattr(part, "vectors") else part.parameters()
        found = arrays["weights"] if "weights" in arrays else arrays["head"][: part.head] if arrays else part.vectors()
        np.testing.assert_allclose(found - found[0], given - given[0], atol=1e-5)  # what all share says nothing
    hidden = batch()[1]
    assert readout.best(hidden, 1)[0][:, 0].tolist() == readout.scores(hidden).argmax(axis=1).tolist()
    assert np.isfinite(readout.step(*batch()))


def test_rate_scale_scales_the_rate(make):
    scaled, plain = make(rate=0.4), make(rate=0.1)
    scaled.rate_scale = 0.25
    assert train(scaled) == train(plain)
    assert frozen(scaled) == frozen(plain)


@pytest.mark.parametrize("bad", [math.nan, math.inf, -0.1, "fast"])
def test_a_rate_that_is_none_is_refused_later_too(bad):
    readout = MAKE["full"](rate=0.3)
    with pytest.raises(ValueError, match=r"rate: found .*, expected a finite number of at least 0"):
        readout.rate = bad
    assert readout.rate == 0.3


def test_no_rows(make):
    readout = make()
    grad, hidden, target = batch(rows=0)
    before = frozen(readout)
    assert readout.step(grad, hidden, target) == 0
    assert readout.log_prob(hidden, target).shape == (0,)
    assert readout.best(hidden, 3)[0].shape == (0, 3)
    assert frozen(readout) == before


def test_two_classes_and_counts_of_zero():
    for make_small in (FullReadout, TreeReadout, SampledReadout):
        readout = make_small(np.zeros(2), 3, batch=4, optimiser=SGD(0.5))
        hidden, target = np.ones((4, 3), np.float32), np.ones(4, np.int32)
        for _ in range(20):
            readout.step(np.empty_like(hidden), hidden, target)
        assert readout.best(hidden, 1)[0].tolist() == [[1]] * 4


def test_the_backend_may_be_chosen():
    for one in (backend.choose("cpu"), "cpu", None):
        assert MAKE["full"](backend=one).backend.name == "cpu"
    with pytest.raises(ValueError, match=r"backend: found int, expected hybrid\.choose"):
        MAKE["full"](backend=3)
