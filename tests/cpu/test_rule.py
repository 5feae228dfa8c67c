"""What becomes of a row in a visit, by every kernel of a readout: in float32 against plain NumPy in float64, and bit for bit.

Kernels are held to their own oracles under plain SGD in their own files; here, with cpu/output/rule.py, with Adagrad, biases
and weights. A kernel is compiled anew for what is None and what is not, so other tests (tests/support/ruled_engine.py,
tests/hybrid/readout/test_readouts.py) keep to those with biases, too.
"""

import itertools

import numpy as np
import pytest

from bench.oracles.tree import path
from cpu import negative, sampled_softmax, softmax, tree_softmax
from cpu.tree.logistic_rows import OWNERS
from cpu.tree.tree import huffman
from tests.support.drawn_ids import zipf
from tests.support.visits import copied, drawn, learn_classes, learn_nodes

CLASSES, WIDTH, BATCH = 40, 37, 30
RATE = 0.2
TREE = huffman(1000 // np.arange(1, CLASSES + 1))


def case(name, count=CLASSES):
    """What learns, hidden vectors, targets of which some follow each other, and weights, one of them 0."""
    rng = np.random.default_rng(len(name))
    learned = drawn(rng, count, WIDTH, name, True)
    learned.rows[:] /= 6
    hidden = rng.normal(size=(BATCH, WIDTH)).astype(np.float32)
    target = np.repeat(zipf(rng, CLASSES, BATCH // 3), 3).astype(np.int32)
    weight = rng.random(BATCH).astype(np.float32)
    weight[4] = 0
    return learned, hidden, target, weight


def stepped(kernel, learned, hidden, target, weight, rate):
    """A step of a kernel on copies: the gradient, the loss, and what has moved."""
    learned, grad, loss = copied(learned, np.copy), np.ones_like(hidden), np.empty(len(hidden), hidden.dtype)
    KERNELS[kernel](grad, loss, learned, hidden, target, weight, rate)
    return grad, loss, *present(learned)


def by_tree(grad, loss, learned, hidden, target, weight, rate):
    work = tree_softmax.workspace(*hidden.shape, TREE.depth, hidden.dtype)
    tree_softmax.step(grad, loss, learned, work, TREE, hidden, target, weight, rate)


def drawn_negatives(target):
    return np.random.default_rng(5).integers(0, CLASSES, (len(target), 6)).astype(np.int32)


def by_negatives(grad, loss, learned, hidden, target, weight, rate):
    work = negative.workspace(*hidden.shape, 6, hidden.dtype)
    drawn = drawn_negatives(target)
    negative.step(grad, loss, learned, work, hidden, target, drawn, weight, rate)


def by_softmax(grad, loss, learned, hidden, target, weight, rate):
    work = softmax.workspace(*hidden.shape, hidden.dtype)
    softmax.step(grad, loss, learned, work, hidden, target, weight, rate)


def by_samples(grad, loss, learned, hidden, target, weight, rate):
    """All classes are drawn: the full softmax, but classes meet as negatives and as targets."""
    work = sampled_softmax.workspace(*hidden.shape, CLASSES, hidden.dtype)
    count = sampled_softmax.draw(work, sampled_softmax.log_uniform(CLASSES), CLASSES, target, 0, 0)
    sampled_softmax.learn(grad, loss, learned, work, count, hidden, target, weight, rate)


KERNELS = {
    "tree": by_tree,
    "negatives": by_negatives,
    "softmax": by_softmax,
    "samples": by_samples,
}
ROWS = {"tree": CLASSES - 1}


def tree_oracle(learned, hidden, target, weight, rate):
    lists = [path(TREE, leaf) for leaf in target]
    return learn_nodes(learned, hidden, lists, weight, rate, [(b, b + 1) for b in range(len(target))])


def negatives_oracle(learned, hidden, target, weight, rate):
    lists = []
    for positive, others in zip(target.tolist(), drawn_negatives(target).tolist(), strict=True):
        met = [(positive, 1)] + [(v, 0) for v in dict.fromkeys(others) if v != positive]
        lists.append(sorted(met, key=lambda pair: pair[0] % OWNERS))
    return learn_nodes(learned, hidden, lists, weight, rate, [(b, b + 1) for b in range(len(target))])


ORACLES = {
    "tree": tree_oracle,
    "negatives": negatives_oracle,
    "softmax": learn_classes,
    "samples": learn_classes,
}


def present(learned):
    """The arrays that there are."""
    return [array for array in learned if array is not None]


@pytest.mark.parametrize(
    ("kernel", "name"),
    [
        *itertools.product(KERNELS, ["row-adagrad"]),
        *itertools.product(["tree", "negatives", "softmax"], ["adagrad"]),
        *itertools.product(["tree", "softmax", "samples"], ["sgd"]),
    ],
)
def test_a_step_is_that_of_plain_numpy(kernel, name):
    given = case(name, ROWS.get(kernel, CLASSES))
    found = stepped(kernel, *given, RATE)
    learned = copied(given[0])
    others = (array.astype(float) if array.dtype == np.float32 else array for array in given[1:])
    expected = (*ORACLES[kernel](learned, *others, RATE), *present(learned))
    for array, wanted in zip(found, expected, strict=True):
        np.testing.assert_allclose(array, wanted, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("kernel", ["tree", "negatives", "softmax", "samples"])
def test_the_same_bits_at_any_number_of_threads(kernel, check_threads):
    given = *case("row-adagrad", ROWS.get(kernel, CLASSES)), RATE
    check_threads(lambda: stepped(kernel, *given))


@pytest.mark.parametrize("kernel", ["tree", "negatives", "softmax"])
def test_the_oracles_gradient_and_move_are_slopes_of_the_weighted_loss(kernel):
    """With biases and one example, SGD: the move is the rate times the slope."""
    learned, hidden, target, weight = case("sgd", ROWS.get(kernel, CLASSES))
    learned, example = copied(learned), (hidden[:1].astype(float), target[:1], weight[:1] + 0.5)
    after, shift = copied(learned), 1e-6
    grad, _ = ORACLES[kernel](after, *example, 1e-3)

    def loss(hidden=example[0], **changed):
        return ORACLES[kernel](copied(learned)._replace(**changed), hidden, *example[1:], 0.0)[1][0]

    for d in (0, 20, WIDTH - 1):
        change = shift * np.eye(WIDTH)[d : d + 1]
        slope = (loss(example[0] + change) - loss(example[0] - change)) / (2 * shift)
        assert grad[0, d] == pytest.approx(slope, abs=1e-8)
    for v in range(len(learned.rows)):
        for name in ("rows", "biases"):
            before, change = getattr(learned, name), np.zeros_like(getattr(learned, name))
            change[v] = shift
            slope = (loss(**{name: before + change}) - loss(**{name: before - change})) / (2 * shift)
            assert (getattr(after, name) - before)[v].sum() == pytest.approx(-1e-3 * slope, abs=1e-11)


def test_without_a_weight_all_weights_are_1():
    learned, hidden, target, _ = case("row-adagrad")
    for kernel in ("negatives", "softmax", "samples"):
        weights = None, np.ones(BATCH, np.float32)
        one, other = (stepped(kernel, learned, hidden, target, weight, RATE) for weight in weights)
        for array, wanted in zip(one, other, strict=True):
            np.testing.assert_allclose(array, wanted, rtol=0, atol=2e-6)
