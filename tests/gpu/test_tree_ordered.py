"""The mode "ordered" of a tree on the device: the serial loop's numbers up to rounding, where a block takes a crowded node.

Here is tested gpu/tree_crowd.cuh.
"""

import numpy as np
import pytest

from cpu.tree import balanced, huffman, path
from gpu import kernels, tree_softmax
from tests import cudasim
from tests.support import visits
from tests.support.tree_nodes import learn
from tests.support.tree_on_gpu import close, run, same
from tests.support.tree_softmax import case

CROWD = 64  # as in gpu/tree_crowd.cuh


def ordered(gpu, tree, nodes, hidden, target, rate=0.1):
    return run(gpu, tree, nodes, hidden, target, rate, "ordered")


def serial(tree, nodes, hidden, target, rate=0.1):
    """The oracle."""
    rows = nodes.astype(np.float64)
    return *learn(rows, hidden.astype(np.float64), [path(tree, leaf) for leaf in target], rate), rows


@pytest.mark.parametrize("batch", [1, 31, 32, 33, 64, 250])
@pytest.mark.parametrize("width", [1, 31, 32, 33, 64, 100, 128, 256, 300])
def test_learns_as_numpy_does(gpu, width, batch):
    given = huffman(1000 // np.arange(1, 41)), *case(40, width, batch)
    close(ordered(gpu, *given), serial(*given))


@pytest.mark.parametrize("width", [3, 130])
def test_a_batch_of_a_thousand(gpu, width):
    given = balanced(300), *case(300, width, 1000)
    close(ordered(gpu, *given), serial(*given), atol=1e-4)


@pytest.mark.parametrize("batch", [1100, 2100])
def test_more_examples_than_a_warp_looks_through_at_once(gpu, batch):
    """Chunks end where the block looks again: at 1,024 and 2,048."""
    tree, (nodes, hidden, target) = balanced(2), case(2, 5, batch)
    close(ordered(gpu, tree, nodes, hidden, target, 0.01), serial(tree, nodes, hidden, target, 0.01), atol=1e-4)
    target[0], target[1:1030] = 0, 1  # and a window without an example of the node on the left
    tree, nodes = balanced(3), case(3, 5, 1)[0]
    close(ordered(gpu, tree, nodes, hidden, target, 0.01), serial(tree, nodes, hidden, target, 0.01), atol=1e-4)


def test_several_crowded_nodes_begin_in_one_block(gpu):
    """At the third level four nodes, met first by the first four examples; each has a hundred."""
    nodes, hidden, _ = case(8, 40, 400)
    given = balanced(8), nodes, hidden, (np.arange(400) * 2 % 8 + np.arange(400) // 4 % 2).astype(np.int32)
    close(ordered(gpu, *given), serial(*given))


@pytest.mark.parametrize("width", [20, 200])
def test_nodes_without_a_crowd_get_the_bits_of_the_serial_loop(gpu, width):
    tree, (nodes, hidden, target) = balanced(300), case(300, width, CROWD)
    few = tree, nodes, hidden[:-1], target[:-1], 0.1
    same(run(gpu, *few, "ordered"), run(gpu, *few))
    crowd, apart = (run(gpu, tree, nodes, hidden, target, 0.1, mode) for mode in ("ordered", "deterministic"))
    assert any(one.tobytes() != other.tobytes() for one, other in zip(crowd, apart, strict=True))


def test_same_bytes_in_every_run(gpu):
    given, found = (huffman(1000 // np.arange(1, 41)), *case(40, 70, 150)), []
    for seed in range(5):
        if gpu.simulated:
            cudasim.seed(seed)
        found.append(ordered(gpu, *given))
        same(found[0], found[-1])


def test_a_rate_of_nothing_moves_nothing(gpu):
    tree, (nodes, hidden, target) = balanced(9), case(9, 40, 100)
    assert ordered(gpu, tree, nodes, hidden, target, 0)[2].tobytes() == nodes.tobytes()


def test_a_nan_is_seen_from_its_example_on(gpu):
    tree, (nodes, hidden, target) = balanced(9), case(9, 40, 150)
    grad, loss, _ = ordered(gpu, tree, nodes, hidden, target)
    hidden[77, 39] = np.nan
    found = ordered(gpu, tree, nodes, hidden, target)
    same([found[0][:77], found[1][:77]], [grad[:77], loss[:77]])
    assert np.isnan(found[0][77:]).all() and np.isnan(found[1][77:]).all() and np.isnan(found[2][0]).all()


def test_extreme_scores(gpu):
    """One node: scores of 0, where the slope is largest, and of hundreds, where e^s would overflow or lose all digits."""
    scores = np.repeat(np.array([0, 1e-4, 20, 90, 300, -20, -90, -300], np.float32), 9)
    hidden, nodes, target = scores[:, None].copy(), np.ones((1, 1), np.float32), np.zeros(72, np.int32)
    grad, loss, _ = ordered(gpu, balanced(2), nodes, hidden, target, 0)
    np.testing.assert_allclose(loss, np.logaddexp(0, scores.astype(float)), rtol=1e-6, atol=1e-37)
    np.testing.assert_allclose(grad[:, 0], np.exp(-np.logaddexp(0, -scores.astype(float))), rtol=1e-6, atol=1e-37)


@pytest.mark.parametrize(
    "optimiser, biases, weighed",
    [("row-adagrad", 0, 0), ("sgd", 1, 0), ("sgd", 0, 1)],
)
def test_other_rules_biases_and_weights_are_those_of_deterministic(gpu, optimiser, biases, weighed):
    rng, tree = np.random.default_rng(0), balanced(9)
    learned, (_, hidden, target) = visits.drawn(rng, 8, 20, optimiser, biases=bool(biases)), case(9, 20, 100)
    weight, found = gpu.put(rng.random(100).astype(np.float32)) if weighed else None, []
    plan, work = gpu.run(tree_softmax.plan, tree), gpu.run(tree_softmax.workspace, 100, 20, tree.depth, np.float32)
    for mode in ("ordered", "deterministic"):
        grad, loss, there = (
            gpu.empty((100, 20), np.float32),
            gpu.empty(100, np.float32),
            visits.copied(learned, gpu.put),
        )
        given = gpu.put(hidden), gpu.put(target), weight, 0.1, mode
        gpu.run(tree_softmax.step, grad, loss, there, work, plan, *given)
        found.append([gpu.get(array) for array in (grad, loss, *there) if array is not None])
    same(*found)


@pytest.mark.parametrize(
    "width, name",
    [
        (32, "learn_1_ordered"),
        (33, "learn_2_ordered"),
        (128, "learn_4_ordered"),
        (256, "learn_8_ordered"),
        (257, "learn_wide"),
    ],
)
def test_the_kernel_goes_by_the_width(gpu, monkeypatch, width, name):
    launched, launch = [], kernels.launch
    monkeypatch.setattr(kernels, "launch", lambda *given, **more: launched.append(given[1]) or launch(*given, **more))
    ordered(gpu, balanced(4), *case(4, width, 3))
    assert launched == ["climb", name, "add"]
