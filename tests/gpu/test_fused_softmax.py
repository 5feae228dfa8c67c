"""The fused full softmax on the device, as 3xTF32 held to what fp32 is held to, and in TF32; against NumPy in float64."""

import numpy as np
import pytest

from cpu import softmax as twin
from gpu import fused_softmax, softmax
from hybrid.contract import Learned, Rule
from tests import cudasim
from tests.gpu import ptxas
from tests.support import slopes, visits

EPS = np.finfo(np.float32).eps
KINDS = {"3xtf32": False, "tf32": True}
NEAR, ROUNDED = 20 * EPS, 1e-3  # relative to the largest product; the first as in tests/gpu/test_softmax.py

# Classes, width, rows: around what stays with a block of each width, 128, 64 and 32 rows, and the 32 that pass by
SIZES = [
    *((2, 4, 1), (127, 32, 5), (128, 36, 32), (129, 128, 33), (300, 8, 64), (260, 100, 130)),
    *((65, 132, 33), (64, 256, 65), (70, 200, 3), (33, 260, 31), (31, 512, 33), (40, 384, 64)),
]


@pytest.fixture(autouse=True)
def device(gpu, monkeypatch):
    """One that can; of seven multiprocessors, so that classes are measured in a few shares."""
    if not (gpu.simulated or fused_softmax.able(gpu.device)):
        pytest.skip("needs tensor cores with TF32, and shared memory for a tile")
    monkeypatch.setattr(gpu.device, "multiprocessors", 7)
    return gpu.device


def problem(classes, width, batch, spread=1.0, seed=0):
    rng = np.random.default_rng([classes, width, batch, seed])
    weights = (spread * rng.normal(size=(classes, width))).astype(np.float32)
    hidden = rng.normal(size=(batch, width)).astype(np.float32)
    return Learned(weights), hidden, rng.integers(0, classes, batch).astype(np.int32)


def ruled(classes, width, batch, optimiser, biases):
    """A problem in the middle of a run, and weights of its examples, of which one is 0."""
    rng = np.random.default_rng([classes, width, batch, 1])
    learned = visits.drawn(rng, classes, width, optimiser, biases)
    hidden = (rng.normal(size=(batch, width)) / np.sqrt(width)).astype(np.float32)
    weight = (2 * rng.random(batch)).astype(np.float32)
    weight[batch // 2] = 0
    return learned, hidden, rng.integers(0, classes, batch).astype(np.int32), weight


def stepped(gpu, learned, hidden, target, rule, weight=None, fused=True):
    """grad, loss and what has learned after a step."""
    there, grad, loss = (
        visits.copied(learned, gpu.put),
        gpu.empty(hidden.shape, np.float32),
        gpu.empty(len(hidden), np.float32),
    )
    work = gpu.run(softmax.workspace, *hidden.shape, np.float32)
    read = work, gpu.put(hidden), gpu.put(target), None if weight is None else gpu.put(weight)
    assert not fused or gpu.run(fused_softmax.fits, there, read[1])
    before, softmax.FUSED = softmax.FUSED, fused
    try:
        gpu.run(softmax.step, grad, loss, there, *read, rule)
    finally:
        softmax.FUSED = before
    return gpu.get(grad), gpu.get(loss), visits.copied(there, gpu.get)


def oracle(learned, hidden, target, rule, weight=None):
    """The same in float64."""
    moved, times = visits.copied(learned), np.ones(len(target)) if weight is None else weight.astype(float)
    return *visits.learn_classes(moved, hidden.astype(float), target, times, rule), moved


def check(gpu, given, rule, relative):
    """A step of plain SGD, by what a logit can be wrong: a sum of D products of a few units."""
    learned, hidden, _ = given
    largest = np.abs(learned.rows).max() * np.abs(hidden).max()
    close = relative * np.sqrt(hidden.shape[1]) * largest
    grad, loss, moved = oracle(*given, rule)
    found = stepped(gpu, *given, rule)
    np.testing.assert_allclose(found[1], loss, atol=close)
    np.testing.assert_allclose(found[0], grad, atol=close * np.abs(learned.rows).max())
    np.testing.assert_allclose(found[2].rows, moved.rows, atol=close * len(hidden))


def check_ruled(gpu, given, rule):
    *given, weight = given
    found, expected = stepped(gpu, *given, rule, weight), oracle(*given, rule, weight)
    for one, other in zip(found[:2], expected[:2], strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-4, atol=3e-5)
    visits.check_close(found[2], expected[2], 3e-5)


@pytest.mark.parametrize("sizes", SIZES)
def test_three_products_in_tf32_are_as_close_to_float64_as_one_in_fp32(gpu, sizes):
    check(gpu, problem(*sizes), Rule(0.1), NEAR)


@pytest.mark.parametrize("sizes", SIZES)
def test_one_product_in_tf32_is_within_a_thousandth(gpu, device, monkeypatch, sizes):
    monkeypatch.setattr(device, "tf32", True)
    check(gpu, problem(*sizes), Rule(0.1), ROUNDED)


@pytest.mark.parametrize(("optimiser", "decay", "clip"), visits.RULES)
@pytest.mark.parametrize("biases", [False, True])
@pytest.mark.parametrize("sizes", [(151, 20, 33), (40, 260, 35)])
def test_every_rule_with_weights_of_the_examples(gpu, sizes, biases, optimiser, decay, clip):
    check_ruled(gpu, ruled(*sizes, optimiser, biases), Rule(0.1, decay, clip))


@pytest.mark.parametrize("optimiser", visits.OPTIMISERS)
@pytest.mark.parametrize("biases", [False, True])
def test_against_the_unfused_step(gpu, biases, optimiser):
    *given, weight = ruled(200, 136, 40, optimiser, biases)
    for rule in (Rule(0.1), Rule(0.1, 0.5, 0.3)):
        fused, unfused = (stepped(gpu, *given, rule, weight, way) for way in (True, False))
        for one, other in zip(fused[:2], unfused[:2], strict=True):
            np.testing.assert_allclose(one, other, rtol=1e-5, atol=1e-5)
        visits.check_close(fused[2], unfused[2], 1e-5)


def test_tf32_rounds_and_three_products_do_not(gpu, device, monkeypatch):
    """1 + 2^-12 is no number of TF32. In fp32 the logits differ by 64 of those, else by none."""
    weights, hidden = np.ones((2, 64), np.float32), np.full((1, 64), 1 + 2.0**-12, np.float32)
    weights[1] = 1 + 2.0**-12
    given = Learned(weights), hidden, np.zeros(1, np.int32), Rule(0.0)
    assert stepped(gpu, *given)[1][0] == pytest.approx(np.log1p(np.exp(64 * (1 + 2.0**-12) * 2.0**-12)), abs=1e-5)
    monkeypatch.setattr(device, "tf32", True)
    assert stepped(gpu, *given)[1][0] == pytest.approx(np.log(2), abs=1e-6)


def test_in_tf32_too_the_gradient_vanishes_where_the_target_has_all_the_mass(gpu, device, monkeypatch):
    """Its share of the gradient is fp32: what is left of its row is not the rounding of a product."""
    monkeypatch.setattr(device, "tf32", True)
    learned, hidden, target = (
        Learned(np.array([[3, 1 / 3, 5, 7]] + 40 * [[0] * 4], np.float32)),
        np.full((1, 4), 8, np.float32),
        [0],
    )
    assert not stepped(gpu, learned, hidden, np.array(target, np.int32), Rule(0.1))[0].any()


def test_the_gradients_are_the_slopes_of_the_loss(gpu):
    learned, hidden, target, _ = ruled(133, 4, 3, "sgd", True)
    grad, _, moved = stepped(gpu, learned, hidden, target, Rule(1.0))

    def loss(weights, biases, hidden):
        return oracle(Learned(weights, biases), hidden, target, Rule(0.0))[1].sum()

    gradients = learned.rows - moved.rows, learned.biases - moved.biases, grad
    places = [(0, 0), (2, 3), (132, 1), (target[0], 2)], [(0,), (132,), (target[1],)], [(0, 0), (2, 3), (1, 2)]
    slopes.check(loss, (learned.rows, learned.biases, hidden), gradients, places, 2e-5)


@pytest.mark.parametrize("optimiser", visits.OPTIMISERS)
def test_against_the_twin(gpu, optimiser):
    learned, hidden, target, weight = ruled(400, 24, 40, optimiser, True)
    mine = stepped(gpu, learned, hidden, target, Rule(0.1, 0.5, 0.3), weight)
    grad, loss = np.empty_like(hidden), np.empty(40, np.float32)
    work = twin.workspace(40, 24, np.float32)
    twin.step(grad, loss, learned, work, hidden, target, weight, Rule(0.1, 0.5, 0.3))
    for found, expected in zip(mine[:2], (grad, loss), strict=True):
        np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-5)
    visits.check_close(mine[2], learned, 1e-5)


@pytest.mark.parametrize("spread", [1e-20, 100.0, 1e4])
def test_logits_of_any_size(gpu, spread):
    """They grow from tile to tile, so that the base changes in each."""
    learned, hidden, target = problem(600, 8, 6, spread=spread)
    learned.rows[:] *= np.geomspace(1e-3, 1, 600, dtype=np.float32)[:, None]
    grad, loss, _ = stepped(gpu, learned, hidden, target, Rule(0.0))
    np.testing.assert_allclose(loss, oracle(learned, hidden, target, Rule(0.0))[1], rtol=1e-5, atol=1e-5)
    assert np.isfinite(grad).all()


def test_the_rest_of_a_tile_adds_nothing_where_all_logits_are_far_below_it(gpu):
    learned, hidden, target = problem(5, 8, 3)
    learned, hidden = Learned(np.abs(learned.rows) - 200, np.full(5, 100, np.float32)), np.abs(hidden) + 1
    grad, loss, moved = oracle(learned, hidden, target, Rule(0.1))
    found = stepped(gpu, learned, hidden, target, Rule(0.1))
    for one, other in zip(found[:2], (grad, loss), strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-4, atol=1e-2)  # logits are near -3,000
    visits.check_close(found[2], moved, 1e-2, 1e-4)


@pytest.mark.parametrize("tf32", KINDS.values(), ids=KINDS)
@pytest.mark.parametrize("optimiser", visits.OPTIMISERS)
@pytest.mark.parametrize("sizes", [(400, 20, 40), (100, 264, 40)])
def test_the_same_bytes_in_any_order_of_work(gpu, device, monkeypatch, sizes, optimiser, tf32):
    monkeypatch.setattr(device, "tf32", tf32)
    *given, weight = ruled(*sizes, optimiser, True)
    outcomes = set()
    for seed in range(3):
        if gpu.simulated:
            cudasim.seed(seed)
        grad, loss, moved = stepped(gpu, *given, Rule(0.1, 0.5, 0.3), weight)
        outcomes.add(b"".join(array.tobytes() for array in (grad, loss, *moved) if array is not None))
    assert len(outcomes) == 1


# NaN and infinity


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("where", ["rows", "biases", "hidden"])
@pytest.mark.parametrize("sizes", [(140, 8, 5), (40, 264, 5)])
@pytest.mark.parametrize("tf32", KINDS.values(), ids=KINDS)
def test_what_is_not_finite_is_as_visible_as_in_the_unfused_step(gpu, device, monkeypatch, tf32, sizes, where, value):
    learned, hidden, target, _ = ruled(*sizes, "sgd", True)
    changed = {"rows": learned.rows[-3], "biases": learned.biases, "hidden": hidden[2]}[where]
    changed[5] = value
    hidden[1, 5] = 0 if where == "rows" else hidden[1, 5]  # times infinity: NaN
    unfused = stepped(gpu, learned, hidden, target, Rule(0.1), fused=False)
    monkeypatch.setattr(device, "tf32", tf32)
    fused = stepped(gpu, learned, hidden, target, Rule(0.1))
    for one, other in zip((*fused[:2], *fused[2][:2]), (*unfused[:2], *unfused[2][:2]), strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-2, atol=1e-2)  # NaN and infinity at the same places
    assert np.isnan(fused[0]).any() or (where == "biases" and value == -np.inf)


def test_a_class_of_no_probability(gpu):
    """Its row is minus infinity, and so is its logit: a logarithm of four, as the unfused step says."""
    weights, hidden = np.zeros((5, 4), np.float32), np.ones((1, 4), np.float32)
    weights[0, 2] = -np.inf
    given = Learned(weights), hidden, np.array([1], np.int32), Rule(0.0)
    grad, loss, _ = stepped(gpu, *given)
    assert loss[0] == pytest.approx(np.log(4))
    assert np.isnan(grad).tolist() == [[False, False, True, False]]  # 0 times infinity


@pytest.mark.parametrize("largest", [1e4, 1e38, 3.4e38])
def test_the_largest_numbers_that_there_are(gpu, largest):
    weights = np.full((67, 4), 0, np.float32)
    weights[:, 0] = -largest
    weights[[1, 65], 0] = largest
    given = Learned(weights), np.ones((2, 4), np.float32), np.array([1, 0], np.int32), Rule(0.0)
    loss = stepped(gpu, *given)[1]
    assert loss[0] == pytest.approx(np.log(2))
    assert loss[1] == pytest.approx(2 * largest + np.log(2)) if largest < 3e38 else np.isposinf(loss[1])


@pytest.mark.parametrize("width", [8, 264])
def test_a_nan_of_one_row_stays_there(gpu, width):
    learned, hidden, target = problem(140, width, 3)
    hidden[1, -4] = np.nan
    grad, loss, _ = stepped(gpu, learned, hidden, target, Rule(0.0))
    assert np.isnan(loss).tolist() == np.isnan(grad).any(axis=1).tolist() == [False, True, False]


# Sizes


@pytest.mark.parametrize("seed", range(20))
def test_drawn_sizes(gpu, device, monkeypatch, seed):
    rng = np.random.default_rng(seed)
    monkeypatch.setattr(device, "multiprocessors", int(rng.integers(1, 200)))
    sizes = int(2 ** rng.uniform(1, 9)), 4 * int(2 ** rng.uniform(0, 6)), int(2 ** rng.uniform(0, 7))
    check_ruled(gpu, ruled(*sizes, str(rng.choice(visits.OPTIMISERS)), bool(rng.integers(2))), Rule(0.1))


@pytest.mark.slow
@pytest.mark.parametrize(
    "sizes", [(200_000, 4, 1), (20_001, 8, 17), (2, 4, 2048), (129, 8, 2047), (500, 132, 301), (3001, 512, 33)]
)
def test_large_sizes(gpu, device, monkeypatch, sizes):
    monkeypatch.setattr(device, "multiprocessors", 132)
    check_ruled(gpu, ruled(*sizes, "adagrad", True), Rule(0.1, 0.5, 0.3))


@pytest.mark.parametrize("width", [8, 200, 512])
@pytest.mark.parametrize(("classes", "batch"), [(2, 1), (1000, 1), (200_000, 1024), (200_000, 70_000), (33, 2048)])
def test_parts_of_the_gradient_take_64_kib_a_multiprocessor_at_most(gpu, device, width, classes, batch):
    tile = fused_softmax._tile(width)
    staying = -(-batch // tile.rows)
    share = gpu.run(fused_softmax._share, staying, classes)
    shares = -(-classes // share)
    assert share % fused_softmax.PASSING == 0 and (shares - 1) * share < classes
    assert 4 * shares * staying * tile.rows * width <= max(
        device.multiprocessors << 16, 4 * staying * tile.rows * width
    )


def test_a_step_is_three_launches_and_nothing_else(gpu, monkeypatch):
    if not gpu.simulated:
        pytest.skip("only the simulated driver counts its calls")
    monkeypatch.setattr(softmax, "FUSED", True)
    learned, hidden, target = problem(300, 8, 40)
    there, work = Learned(gpu.put(learned.rows)), gpu.run(softmax.workspace, 40, 8, np.float32)
    given = gpu.empty((40, 8), np.float32), gpu.empty(40, np.float32), there, work, gpu.put(hidden), gpu.put(target)

    def launches():
        before = cudasim.counts()
        softmax.step(*given, None, Rule(0.1))
        return {kind: count - before[kind] for kind, count in cudasim.counts().items() if count > before[kind]}

    gpu.run(launches)  # compiles, and allocates its scratch
    assert set(found := gpu.run(launches)) <= {"launch", "other"} and found["launch"] == 3


@pytest.mark.parametrize(
    ("architecture", "widest"),
    [("sm_80", 256), ("sm_86", 128), ("sm_89", 128), ("sm_90", 512), ("sm_100", 512), ("sm_120", 128)],
)
def test_the_widest_rows_of_every_architecture(device, monkeypatch, architecture, widest):
    room = ptxas.MULTIPROCESSORS[architecture]
    monkeypatch.setattr(device, "shared_block", room.shared - room.reserved)  # of a block at most
    monkeypatch.setattr(device, "capability", divmod(int(architecture[3:]), 10))
    assert fused_softmax.able(device, widest) and not fused_softmax.able(device, widest + 1)


def test_what_does_not_fit_goes_the_other_way(gpu, device, monkeypatch):
    learned, hidden, _ = problem(40, 8, 3)
    rows, vectors = gpu.put(learned.rows), gpu.put(hidden)

    def fits(learned=rows, given=vectors):
        return gpu.run(fused_softmax.fits, Learned(learned), given)

    assert fits()
    for width in (6, 516):
        assert not fits(gpu.empty((40, width), np.float32), gpu.empty((3, width), np.float32))
    assert not fits(given=vectors[:0])
    odd, odd_rows = (gpu.put(np.zeros(8 * many + 1, np.float32))[1:].reshape(many, 8) for many in (3, 40))
    assert not fits(given=odd) and not fits(odd_rows)  # no multiple of 16 bytes
    assert not gpu.run(fused_softmax.fits, Learned(rows, squares=odd_rows), vectors)
    assert gpu.run(fused_softmax.fits, Learned(rows, squares=gpu.put(learned.rows)), vectors)
    monkeypatch.setattr(device, "shared_block", 99 << 10)
    assert fits() and not fits(gpu.empty((40, 132), np.float32), gpu.empty((3, 132), np.float32))
    with monkeypatch.context() as older:  # for that one no kernel is compiled
        older.setattr(device, "capability", (7, 5))
        assert not fits()
    monkeypatch.setattr(softmax, "FUSED", True)
    learned, hidden, target = problem(40, 6, 3)
    grad, loss = gpu.empty((3, 6), np.float32), gpu.empty(3, np.float32)
    given = Learned(gpu.put(learned.rows)), gpu.run(softmax.workspace, 3, 6, np.float32), gpu.put(hidden)
    gpu.run(softmax.step, grad, loss, *given, gpu.put(target), None, Rule(0.0))
    assert np.isfinite(gpu.get(loss)).all()
