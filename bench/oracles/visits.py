"""What learns sparsely, in float64: one visit after another, as the contract says."""

import numpy as np

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


def visit(learned, row, g, g_bias, rate):
    """One row, and its bias if it has one, moves against its gradient."""
    whole = g if learned.biases is None else np.append(g, g_bias)
    if learned.squares is None:
        move = rate * whole
    elif learned.squares.ndim == 1:
        learned.squares[row] += (whole**2).mean()
        move = rate * whole / (np.sqrt(learned.squares[row]) + 1e-10)
    else:
        learned.squares[row] += whole[: len(g)] ** 2
        squares = learned.squares[row]
        if learned.biases is not None:
            learned.bias_squares[row] += whole[-1] ** 2
            squares = np.append(squares, learned.bias_squares[row])
        move = rate * whole / (np.sqrt(squares) + 1e-10)
    learned.rows[row] -= move[: len(g)]
    if learned.biases is not None:
        learned.biases[row] -= move[-1]


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


def learn_together(learned, hidden, lists, weight, rate, together):
    """TreeBatch.step: at each node the examples that pass it learn in their order, `together` at a time; grad and loss."""
    grad, loss = np.zeros(hidden.shape), np.zeros(len(hidden))
    visitors: dict = {}
    for b, steps in enumerate(lists):
        for node, turn in steps:
            visitors.setdefault(node, []).append((b, turn))
    for node, met in visitors.items():
        for first in range(0, len(met), together):
            g, g_bias = np.zeros(hidden.shape[1]), 0.0
            for b, turn in met[first : first + together]:
                miss, cost = missed(learned, node, turn, hidden[b])
                loss[b] += weight[b] * cost
                grad[b] -= weight[b] * miss * learned.rows[node]
                g -= weight[b] * miss * hidden[b]
                g_bias -= weight[b] * miss
            visit(learned, node, g, g_bias, rate)
    return grad, loss


def learn(rows, hidden, lists, rate):
    """TreeSoftmax.step of plain SGD: one example after another; grad and loss, `rows` move."""
    return learn_together(Learned(rows), hidden, lists, np.ones(len(hidden)), rate, 1)


def missed(learned, node, turn, h):
    """turn - logistic(score), and -log p(turn)."""
    score = learned.rows[node] @ h + (0 if learned.biases is None else learned.biases[node])
    return turn - 1 / (1 + np.exp(-score)), np.logaddexp(0, -score if turn else score)


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
