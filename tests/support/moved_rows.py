"""Plain float64 NumPy for tests: a visit of a row, as the contract's `Rule` tells it, and rows to be visited."""

import numpy as np

from hybrid.contract import Learned

RULES = {  # optimiser, biases, decay, clip
    "row-wise": ("row-adagrad", False, None, None),
    "row-wise with everything": ("row-adagrad", True, 0.3, 0.4),
    "adagrad with everything": ("adagrad", True, 0.3, 0.4),
    "adagrad": ("adagrad", False, None, None),
    "sgd with everything": ("sgd", True, 0.3, 0.4),
}


def move(learned, row, grad, pull, rule):
    """Move a row against `grad` (D,), and its bias, if it has one, against `pull`."""
    rows, biases, squares, bias_squares = learned
    whole = np.append(grad, [] if biases is None else pull)
    length = np.linalg.norm(whole)
    if rule.clip is not None and length > rule.clip:
        whole = whole * rule.clip / length
    grad = whole[: rows.shape[1]]
    if rule.decay is not None:
        rows[row] *= 1 - rule.rate * rule.decay
    step = bias_step = rule.rate
    if squares is not None and squares.ndim == 1:
        squares[row] += np.mean(whole**2)
        step = bias_step = rule.rate / (np.sqrt(squares[row]) + 1e-10)
    elif squares is not None:
        squares[row] += grad**2
        step = rule.rate / (np.sqrt(squares[row]) + 1e-10)
    if bias_squares is not None:
        bias_squares[row] += whole[-1] ** 2
        bias_step = rule.rate / (np.sqrt(bias_squares[row]) + 1e-10)
    rows[row] -= step * grad
    if biases is not None:
        biases[row] -= bias_step * whole[-1]


def drawn(rows, optimiser, biases, seed=0):
    """What an optimiser learns of a table, some way into training: squares and biases are drawn, of the table's dtype."""
    rng, (count, width) = np.random.default_rng(seed), rows.shape
    squares = {"sgd": None, "row-adagrad": rng.random(count), "adagrad": rng.random((count, width))}[optimiser]
    bias_squares = rng.random(count) if biases and optimiser == "adagrad" else None
    arrays = (rng.normal(size=count) if biases else None, squares, bias_squares)
    return Learned(rows, *(None if array is None else array.astype(rows.dtype) for array in arrays))


def copied(learned, dtype=None):
    """Arrays of its own, of a dtype (None: as they are)."""
    return Learned(*(None if array is None else array.astype(dtype or array.dtype) for array in learned))


def present(learned):
    """The arrays that there are."""
    return [array for array in learned if array is not None]
