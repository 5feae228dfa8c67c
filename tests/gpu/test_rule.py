"""Rows and nodes that learn by every rule, with biases and weights of the examples, on the device and in float64."""

import numpy as np
import pytest

from bench.oracles.tree import path
from cpu.tree.tree import balanced, huffman
from gpu import rows, tree_softmax
from tests.support import visits
from tests.support.drawn_ids import bags, zipf

BATCH = 33


def examples(rng, width, classes, batch=BATCH):
    """Hidden vectors, targets with stretches of equal ones, and weights, of which one is 0."""
    hidden = (rng.normal(size=(batch, width)) / np.sqrt(width)).astype(np.float32)
    target, weight = zipf(rng, classes, batch), (2 * rng.random(batch)).astype(np.float32)
    target[3:23], weight[5] = target[3], 0
    return hidden, target, weight


def there(gpu, learned):
    return visits.copied(learned, gpu.put)


def here(gpu, learned):
    return visits.copied(learned, gpu.get)


def in_float64(learned, *arrays):
    return visits.copied(learned), *(array.astype(float) for array in arrays)


def moved_rows(gpu, learned, ids, grad, rate):
    """After `scatter`."""
    placed = there(gpu, learned)
    gpu.run(rows.scatter, placed, gpu.put(ids), gpu.put(grad), rate)
    return here(gpu, placed)


@pytest.mark.parametrize(
    ("width", "optimiser"), [(1, "adagrad"), (33, "row-adagrad"), (300, "row-adagrad"), (300, "adagrad"), (33, "sgd")]
)
def test_scatter(gpu, width, optimiser):
    rng, rate = np.random.default_rng(width), 0.1
    learned, ids = visits.drawn(rng, 20, width, optimiser), zipf(rng, 20, 70)
    grad = (rng.normal(size=(70, width)) / np.sqrt(width)).astype(np.float32)
    expected, wide = in_float64(learned, grad)
    visits.scatter(expected, ids, wide, rate)
    visits.check_close(moved_rows(gpu, learned, ids, grad, rate), expected, 1e-5)


@pytest.mark.parametrize("optimiser", ["adagrad", "row-adagrad"])
def test_a_gradient_as_small_as_what_keeps_roots_from_0_moves_by_half_the_rate(gpu, optimiser):
    learned, grad = visits.drawn(np.random.default_rng(0), 5, 8, optimiser), np.full((1, 8), 1e-10, np.float32)
    for array in (learned.rows, learned.squares):
        array[:] = 0
    found = moved_rows(gpu, learned, np.array([3], np.int32), grad, 0.5)
    np.testing.assert_allclose(found.rows[3], -0.25, rtol=1e-5)


@pytest.mark.parametrize(("optimiser", "valued"), [("sgd", True), ("row-adagrad", False), ("adagrad", True)])
def test_scatter_of_bags(gpu, monkeypatch, valued, optimiser):
    monkeypatch.setattr(rows, "PART", 50)
    rng, rate = np.random.default_rng(7), 0.1
    bag_at = bags(rng, 7, 40)
    many, sizes = int(bag_at[-1]), np.diff(bag_at)
    learned, ids = visits.drawn(rng, 9, 40, optimiser), zipf(rng, 9, many)
    grad = rng.normal(size=(40, 40)).astype(np.float32)
    values = rng.normal(size=many).astype(np.float32) if valued else None
    placed = there(gpu, learned)
    given = gpu.put(bag_at), gpu.put(ids), None if values is None else gpu.put(values), gpu.put(grad)
    gpu.run(rows.scatter_mean, placed, *given, rate)
    expected, wide = in_float64(learned, grad)
    share = 1 / np.repeat(sizes, sizes) if values is None else values.astype(float)
    visits.scatter(expected, ids, share[:, None] * np.repeat(wide, sizes, axis=0), rate)
    visits.check_close(here(gpu, placed), expected, 1e-5)


def tree_step(gpu, tree, learned, hidden, target, weight, rate):
    """grad, loss and what has learned."""
    placed, plan = there(gpu, learned), gpu.run(tree_softmax.plan, tree)
    grad, loss = gpu.empty(hidden.shape, np.float32), gpu.empty(len(hidden), np.float32)
    work = gpu.run(tree_softmax.workspace, *hidden.shape, tree.depth, np.float32)
    read = gpu.put(hidden), gpu.put(target), None if weight is None else gpu.put(weight)
    gpu.run(tree_softmax.step, grad, loss, placed, work, plan, *read, rate)
    return gpu.get(grad), gpu.get(loss), here(gpu, placed)


def check_tree(gpu, learned, problem, rate):
    tree = huffman(100 // np.arange(1, 14))
    hidden, target, weight = problem
    grad, loss, moved = tree_step(gpu, tree, learned, hidden, target, weight, rate)
    expected, wide = in_float64(learned, hidden)
    weights = np.ones(len(hidden)) if weight is None else weight.astype(float)
    lists = [path(tree, leaf) for leaf in target]
    wanted = visits.learn_nodes(expected, wide, lists, weights, rate, [(b, b + 1) for b in range(len(target))])
    for one, other in zip((grad, loss), wanted, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-4, atol=3e-5)
    visits.check_close(moved, expected, 3e-5)


@pytest.mark.parametrize("optimiser", visits.OPTIMISERS)
@pytest.mark.parametrize(
    ("width", "beside"), [(1, False), (40, True), (128, False), (200, True), (256, False), (270, True), (300, False)]
)
def test_tree(gpu, width, beside, optimiser):
    """Of every width, with biases and weights or without."""
    rng = np.random.default_rng(width)
    learned = visits.drawn(rng, 12, width, optimiser, biases=beside)
    hidden, target, weight = examples(rng, width, 13)
    check_tree(gpu, learned, (hidden, target, weight if beside else None), 0.1)


@pytest.mark.parametrize(
    ("width", "optimiser", "beside"),
    [(40, "row-adagrad", True), (260, "adagrad", True), (40, "sgd", True), (40, "sgd", False), (260, "sgd", False)],
)
def test_a_tree_gets_the_bits_of_the_serial_loop(gpu, width, optimiser, beside):
    rng, tree, rate = np.random.default_rng(1), huffman(10**6 // np.arange(1, 31) ** 2), 0.1
    learned, (hidden, target, weight) = visits.drawn(rng, 29, width, optimiser, beside), examples(rng, width, 30)
    grad, loss, moved = tree_step(gpu, tree, learned, hidden, target, weight if beside else None, rate)
    for b in range(len(hidden)):
        one = slice(b, b + 1)
        own = weight[one] if beside else None
        g, cost, learned = tree_step(gpu, tree, learned, hidden[one], target[one], own, rate)
        assert g.tobytes() == grad[one].tobytes() and cost.tobytes() == loss[one].tobytes()
    for one, other in zip(learned, moved, strict=True):
        assert one is other is None or one.tobytes() == other.tobytes()


@pytest.mark.parametrize("optimiser", visits.OPTIMISERS)
def test_every_run_gives_the_same_bytes(gpu, optimiser):
    rng, tree, rate = np.random.default_rng(6), balanced(40), 0.1
    learned, problem = visits.drawn(rng, 39, 20, optimiser, biases=True), examples(rng, 20, 40)
    table, ids = visits.drawn(rng, 20, 20, optimiser), zipf(rng, 20, 70)
    grad = rng.normal(size=(70, 20)).astype(np.float32)
    gpu.check_same_bytes(
        lambda: (*tree_step(gpu, tree, learned, *problem, rate)[-1], *moved_rows(gpu, table, ids, grad, rate))
    )
