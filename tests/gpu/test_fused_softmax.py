"""The fused full softmax on the device, as 3xTF32 held to what fp32 is held to, and in TF32; against NumPy in float64."""

import numpy as np
import pytest

from cpu import softmax as twin
from gpu import fused_softmax, softmax
from hybrid.contract import Learned, Rule
from tests import cudasim

EPS = np.finfo(np.float32).eps
KINDS = {"3xtf32": False, "tf32": True}

# Classes, width, rows: around a tile of 128 classes, 32 rows, and what a lane reads at once
SIZES = [(2, 4, 1), (127, 32, 5), (128, 36, 32), (129, 128, 33), (300, 8, 64), (260, 100, 70)]


@pytest.fixture(autouse=True)
def device(gpu, monkeypatch):
    """One that can; of two multiprocessors, so that a block takes several tiles."""
    if gpu.device.capability < fused_softmax.LEAST or gpu.device.shared_block < fused_softmax.SHARED:
        pytest.skip("needs tensor cores with TF32, and shared memory for a tile")
    monkeypatch.setattr(gpu.device, "multiprocessors", 2)
    monkeypatch.setattr(softmax, "FUSED", True)
    return gpu.device


def problem(classes, width, batch, spread=1.0, seed=0):
    rng = np.random.default_rng([classes, width, batch, seed])
    weights = (spread * rng.normal(size=(classes, width))).astype(np.float32)
    hidden = rng.normal(size=(batch, width)).astype(np.float32)
    return weights, hidden, rng.integers(0, classes, batch).astype(np.int32)


def stepped(gpu, weights, hidden, target, rule, weight=None):
    """grad, loss and the weights after a step."""
    there, grad, loss = gpu.put(weights), gpu.empty(hidden.shape, np.float32), gpu.empty(len(hidden), np.float32)
    work = gpu.run(softmax.workspace, *hidden.shape, np.float32)
    read = work, gpu.put(hidden), gpu.put(target), None if weight is None else gpu.put(weight)
    gpu.run(softmax.step, grad, loss, Learned(there), *read, rule)
    assert not gpu.simulated or "parts of the gradient" in gpu.queue.scratch  # it was the fused one
    return [gpu.get(array) for array in (grad, loss, there)]


def oracle(weights, hidden, target, rule, weight=None):
    """The same in float64."""
    weights, hidden, rows = weights.astype(float), hidden.astype(float), np.arange(len(target))
    logits = hidden @ weights.T
    top = logits.max(axis=1, keepdims=True)
    log_probs = logits - top - np.log(np.exp(logits - top).sum(axis=1, keepdims=True))
    miss = np.exp(log_probs)
    miss[rows, target] -= 1
    times = np.ones(len(target)) if weight is None else weight
    miss *= times[:, None]
    moved = (1 - rule.rate * (rule.decay or 0)) * weights - rule.rate * miss.T @ hidden
    return miss @ weights, -times * log_probs[rows, target], moved


def check(gpu, given, rule, weight, relative):
    weights, hidden, _ = given
    largest = np.abs(weights).max() * np.abs(hidden).max()
    close = relative * np.sqrt(hidden.shape[1]) * largest
    grad, loss, moved = oracle(*given, rule, weight)
    found = stepped(gpu, *given, rule, weight)
    np.testing.assert_allclose(found[1], loss, atol=close)
    np.testing.assert_allclose(found[0], grad, atol=close * np.abs(weights).max())
    np.testing.assert_allclose(found[2], moved, atol=close * len(hidden))


@pytest.mark.parametrize("sizes", SIZES)
def test_three_products_in_tf32_are_as_close_to_float64_as_one_in_fp32(gpu, sizes):
    check(gpu, problem(*sizes), Rule(0.1), None, 20 * EPS)  # as in tests/gpu/test_softmax.py


@pytest.mark.parametrize("sizes", SIZES)
def test_one_product_in_tf32_is_within_a_thousandth(gpu, device, monkeypatch, sizes):
    monkeypatch.setattr(device, "tf32", True)
    check(gpu, problem(*sizes), Rule(0.1), None, 1e-3)


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("decay", [None, 0.5])
def test_weights_of_examples_and_decay(gpu, weighted, decay):
    given = problem(150, 16, 40)
    weight = np.linspace(0, 2, 40, dtype=np.float32) if weighted else None
    check(gpu, given, Rule(0.1, decay), weight, 20 * EPS)


def test_tf32_rounds_and_three_products_do_not(gpu, device, monkeypatch):
    """1 + 2^-12 is no number of TF32. In fp32 the logits differ by 64 of those, else by none."""
    weights, hidden = np.ones((2, 64), np.float32), np.full((1, 64), 1 + 2.0**-12, np.float32)
    weights[1] = 1 + 2.0**-12
    target, expected = np.zeros(1, np.int32), np.log1p(np.exp(64 * (1 + 2.0**-12) * 2.0**-12))
    assert stepped(gpu, weights, hidden, target, Rule(0.0))[1][0] == pytest.approx(expected, abs=1e-5)
    monkeypatch.setattr(device, "tf32", True)
    assert stepped(gpu, weights, hidden, target, Rule(0.0))[1][0] == pytest.approx(np.log(2), abs=1e-6)


def test_the_gradients_are_the_slopes_of_the_loss(gpu):
    weights, hidden, target = problem(133, 4, 3)
    grad, _, moved = stepped(gpu, weights, hidden, target, Rule(1.0))
    h = 1e-5

    def total(change_weights, change_hidden):
        changed = weights + change_weights, hidden + change_hidden, target
        return oracle(*changed, Rule(0.0))[1].sum()

    for which, array, gradient in ((1, hidden, grad), (0, weights, weights - moved)):
        for place in [(0, 0), (2, 3), (len(array) - 1, 1), (target[0] if which == 0 else 1, 2)]:
            changes = [np.zeros(weights.shape), np.zeros(hidden.shape)]
            changes[which][place] = h
            slope = (total(*changes) - total(*(-change for change in changes))) / (2 * h)
            assert gradient[place] == pytest.approx(slope, abs=2e-5)


def test_against_the_twin(gpu):
    weights, hidden, target = problem(400, 24, 40)
    mine = stepped(gpu, weights, hidden, target, Rule(0.1))
    grad, loss = np.empty_like(hidden), np.empty(40, np.float32)
    twin.step(grad, loss, Learned(weights), twin.workspace(40, 24, np.float32), hidden, target, None, Rule(0.1))
    for found, expected in zip(mine, (grad, loss, weights), strict=True):
        np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("spread", [1e-20, 100.0, 1e4])
def test_logits_of_any_size(gpu, spread):
    """They grow from tile to tile, so that the base changes in each."""
    weights, hidden, target = problem(600, 8, 6, spread=spread)
    weights *= np.geomspace(1e-3, 1, len(weights), dtype=np.float32)[:, None]
    grad, loss, _ = stepped(gpu, weights, hidden, target, Rule(0.0))
    np.testing.assert_allclose(loss, oracle(weights, hidden, target, Rule(0.0))[1], rtol=1e-5, atol=1e-5)
    assert np.isfinite(grad).all()


def test_the_rest_of_a_tile_adds_nothing_where_all_logits_are_far_below_it(gpu):
    weights, hidden, target = problem(5, 8, 3)
    weights, hidden = np.abs(weights) - 200, np.abs(hidden) + 1
    grad, loss, moved = oracle(weights, hidden, target, Rule(0.1))
    found = stepped(gpu, weights, hidden, target, Rule(0.1))
    for one, other in zip(found, (grad, loss, moved), strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-4, atol=1e-2)  # logits are near -3,000


@pytest.mark.parametrize("tf32", KINDS.values(), ids=KINDS)
def test_the_same_bytes_in_any_order_of_work(gpu, device, monkeypatch, tf32):
    monkeypatch.setattr(device, "tf32", tf32)
    given, results = problem(400, 20, 40), []
    for seed in range(3):
        if gpu.simulated:
            cudasim.seed(seed)
        results.append(b"".join(array.tobytes() for array in stepped(gpu, *given, Rule(0.1))))
    assert len(set(results)) == 1


def test_a_nan_stays_visible_and_of_one_row_stays_there(gpu):
    weights, hidden, target = problem(140, 8, 3)
    hidden[1, 4] = np.nan
    grad, loss, _ = stepped(gpu, weights, hidden, target, Rule(0.0))
    assert np.isnan(loss).tolist() == np.isnan(grad).any(axis=1).tolist() == [False, True, False]
    hidden[1, 4], weights[130, 2] = 0, np.nan
    grad, loss, _ = stepped(gpu, weights, hidden, target, Rule(0.0))
    assert np.isnan(loss).all() and np.isnan(grad).all()


def test_what_does_not_fit_goes_the_other_way(gpu, device, monkeypatch):
    weights, hidden, _ = problem(40, 8, 3)
    rows, vectors = gpu.put(weights), gpu.put(hidden)
    vector, rule = gpu.put(weights[:, 0].copy()), Rule(0.1)

    def fits(learned=None, given=vectors, by=rule):
        return gpu.run(fused_softmax.fits, learned or Learned(rows), given, by)

    assert fits() and fits(by=Rule(0.1, 0.5))
    assert not fits(by=Rule(0.1, None, 0.3))
    assert not fits(Learned(rows, biases=vector)) and not fits(Learned(rows, squares=vector))
    for width in (6, 132):
        assert not fits(given=gpu.empty((3, width), np.float32))
    assert not fits(given=vectors[:0])
    monkeypatch.setattr(fused_softmax, "NUMBERS", 23)
    assert not fits()
    monkeypatch.undo()
    monkeypatch.setattr(device, "capability", (7, 5))
    assert not fits()
