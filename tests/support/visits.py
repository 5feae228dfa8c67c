"""What learns sparsely, in float64: one visit after another, as the contract says. The visits are of bench/oracles/tree.py."""

import numpy as np

from bench.oracles.tree import learn_together, missed, visit
from hybrid.contract import Learned

OPTIMISERS = ("sgd", "row-adagrad", "adagrad")


def drawn(rng, rows, width, optimiser="sgd", biases=False, dtype=np.float32):
    """A Learned whose numbers are drawn, as they are in the middle of a run."""
    squares = {"sgd": None, "row-adagrad": rows, "adagrad": (rows, width)}[optimiser]
    each = optimiser == "adagrad" and biases
    return Learned(
        rng.normal(size=(rows, width)).astype(dtype),
        rng.normal(size=rows).astype(dtype) if biases else None,
        None if squares is None else rng.random(squares).astype(dtype),
        rng.random(rows).astype(dtype) if each else None,
    )


def copied(learned, copy=lambda array: array.astype(float)):
    """The same with every array copied, by default in float64."""
    return Learned(*(None if array is None else copy(array) for array in learned))


def scatter(learned, ids, grad, rate):
    """Rows.scatter."""
    for row, g in zip(ids, grad, strict=True):
        visit(learned, row, g, 0, rate)


def learn_nodes(learned, hidden, lists, weight, rate, groups):
    """TreeSoftmax.step: the examples of each group (first, last) through the (node, turn) of their lists; grad and loss."""
    grad, loss = np.zeros(hidden.shape), np.zeros(len(hidden))
    for first, last in groups:
        sums: dict = {}
        for b in range(first, last):
            for node, turn in lists[b]:
                miss, cost = missed(learned, node, turn, hidden[b])
                loss[b] += weight[b] * cost
                grad[b] -= weight[b] * miss * learned.rows[node]
                g, g_bias = sums.get(node, (0, 0))
                sums[node] = g - weight[b] * miss * hidden[b], g_bias - weight[b] * miss
        for node, (g, g_bias) in sums.items():
            visit(learned, node, g, g_bias, rate)
    return grad, loss


def learn(rows, hidden, lists, rate):
    """TreeSoftmax.step of plain SGD: one example after another; grad and loss, `rows` move."""
    return learn_together(Learned(rows), hidden, lists, np.ones(len(hidden)), rate, 1)


def learn_classes(learned, hidden, target, weight, rate):
    """Softmax.step: grad and loss; every row moves."""
    rows = np.arange(len(hidden))
    logits = hidden @ learned.rows.T + (0 if learned.biases is None else learned.biases)
    logits -= np.logaddexp.reduce(logits, axis=1, keepdims=True)
    miss = np.exp(logits)
    miss[rows, target] -= 1
    miss *= weight[:, None]
    grad, loss = miss @ learned.rows, -weight * logits[rows, target]
    for row, (g, g_bias) in enumerate(zip(miss.T @ hidden, miss.sum(axis=0), strict=True)):
        visit(learned, row, g, g_bias, rate)
    return grad, loss


def check_close(found, wanted, atol, rtol=1e-5):
    """Every array of two Learned."""
    for name, one, other in zip(Learned._fields, found, wanted, strict=True):
        assert (one is None) == (other is None), name
        if one is not None:
            np.testing.assert_allclose(one, other, rtol=rtol, atol=atol, err_msg=name)
