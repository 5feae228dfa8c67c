"""The float64 NumPy oracle of both backends of collections of MLPs, and test sizes."""

from collections.abc import Callable

import numpy as np

ACTIVATIONS: dict[str, tuple[Callable, Callable]] = {  # s -> a, and a -> d a / d s
    "logistic": (lambda s: 1 / (1 + np.exp(-s)), lambda a: a * (1 - a)),
    "rational": (lambda s: s / (2 * (abs(s) + 1)) + 0.5, lambda a: (1 - abs(2 * a - 1)) ** 2 / 2),
    "tanh": (np.tanh, lambda a: 1 - a * a),
    "relu": (lambda s: np.maximum(s, 0), lambda a: (a > 0).astype(float)),
}
RAGGED = ([150, 7, 1, 33, 64], [49, 31, 1, 65, 2], [150, 5, 1, 130, 67])  # around vectors and pieces of 64 rows
SIXTY = tuple(size * 15 for size in ([10, 7, 33, 4], [5, 16, 3, 1], [3, 9, 1, 20]))  # an ensemble of small MLPs


def parts(layout, u, numbers):
    """Returns the first matrix, its bias, the second matrix and its bias of unit u, in float64."""
    n, h, o = int(layout.inputs[u]), int(layout.hidden[u]), int(layout.outputs[u])
    flat = np.split(numbers[layout.w_at[u] : layout.w_at[u + 1]].astype(float), np.cumsum([h * n, h, o * h]))
    return flat[0].reshape(h, n), flat[1], flat[2].reshape(o, h), flat[3]


def spans(layout, u):
    return (slice(at[u], at[u + 1]) for at in (layout.x_at, layout.h_at, layout.y_at))


def forward(layout, weights, x, activation):
    activate = ACTIVATIONS[activation][0]
    hidden, y = np.empty((len(x), layout.h_at[-1])), np.empty((len(x), layout.y_at[-1]))
    for u in range(layout.inputs.size):
        first, first_bias, second, second_bias = parts(layout, u, weights)
        cols, inner, outer = spans(layout, u)
        hidden[:, inner] = activate(x[:, cols].astype(float) @ first.T + first_bias)
        y[:, outer] = activate(hidden[:, inner] @ second.T + second_bias)
    return hidden, y


def backward(layout, weights, y_grad, hidden, y, x, activation):
    """Returns d loss / d x and d loss / d weights, from d loss / d y."""
    slope = ACTIVATIONS[activation][1]
    x_grad, weight_grad = np.empty(x.shape), np.empty(weights.size)
    for u in range(layout.inputs.size):
        first, _, second, _ = parts(layout, u, weights)
        cols, inner, outer = spans(layout, u)
        delta = y_grad[:, outer] * slope(y[:, outer])
        h_delta = delta @ second * slope(hidden[:, inner])
        x_grad[:, cols] = h_delta @ first
        grads = (h_delta.T @ x[:, cols].astype(float), h_delta.sum(0), delta.T @ hidden[:, inner], delta.sum(0))
        weight_grad[layout.w_at[u] : layout.w_at[u + 1]] = np.concatenate([grad.ravel() for grad in grads])
    return x_grad, weight_grad


def close(found, expected, dtype, terms):
    """Asserts equality up to rounding in a sum of `terms` products near 1, about its root; 64: slopes and two layers."""
    unit = 64 * np.finfo(dtype).eps * np.sqrt(terms)
    np.testing.assert_allclose(found, expected, rtol=unit, atol=unit * max(1, abs(expected).max()))


def step(layout, weights, velocity, hidden, y, x, target, rate, momentum, activation):
    """Returns loss, weights and velocity after an online step, from the given activations."""
    wrong = y.astype(float) - target
    _, grad = backward(layout, weights, wrong, hidden.astype(float), y, x, activation)
    speed = (0 if velocity is None else momentum * velocity.astype(float)) - rate * grad
    loss = [0.5 * (wrong[:, outer] ** 2).sum() for *_, outer in (spans(layout, u) for u in range(layout.inputs.size))]
    return np.array(loss), weights.astype(float) + speed, speed
