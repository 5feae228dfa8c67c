import functools
import re

import numba
import numpy as np
import pytest

from cpu.vectors import activation

EPS = np.finfo(np.float32).eps
EXPECTED = {
    "exp": np.exp,
    "expm1": np.expm1,
    "log1p": np.log1p,
    "softplus": lambda s: np.logaddexp(0, s),
    "logistic": lambda s: np.where(s < 0, np.exp(-abs(s)), 1) / (1 + np.exp(-abs(s))),
    "rational": lambda s: s / (2 * (abs(s) + 1)) + 0.5,
    "tanh": np.tanh,
    "relu": lambda s: np.maximum(s, 0),
}
DOMAIN = {"expm1": (-120, 0), "log1p": (0, 1)}  # of what they promise; all others take any number


@numba.njit
def activate(values, code):
    activation.activate(values, code)


@numba.njit
def times_slope(delta, values, code):
    activation.times_slope(delta, values, code)


@functools.cache
def loop(name):
    """y[i] = function(x[i])."""
    function = getattr(activation, name)

    @numba.njit(error_model="numpy")
    def run(y, x):
        for i in range(x.size):
            y[i] = function(x[i])

    return run


def points(name):
    low, high = DOMAIN.get(name, (-120, 120))
    rng = np.random.default_rng(0)
    near_zero = rng.normal(size=20_000) * 10.0 ** rng.integers(-8, 1, size=20_000)
    x = np.concatenate([rng.uniform(low, high, 100_000), near_zero, [low, high, 0]])
    return x[(x >= low) & (x <= high)].astype(np.float32)


@pytest.mark.parametrize("name", EXPECTED)
def test_against_float64(name):
    x = points(name)
    y, y64 = np.empty_like(x), np.empty(x.size)
    run = loop(name)
    run(y, x)
    run(y64, x.astype(float))

    with np.errstate(over="ignore"):
        expected = EXPECTED[name](x.astype(float))
        single = expected.astype(np.float32)
    np.testing.assert_allclose(y64, expected, rtol=1e-14, atol=1e-16)
    inside = np.isfinite(single)
    assert np.isposinf(y[~inside]).all()
    # a polynomial good to 1e-8, then a handful of roundings; below 1e-38 float32 has steps of 1.4e-45
    np.testing.assert_allclose(y[inside], expected[inside], rtol=2 * EPS, atol=5e-45)


@pytest.mark.parametrize("turn", [0, 1])
def test_how_wrong_a_logistic_regression_is(turn):
    @numba.njit(error_model="numpy")
    def run(miss, loss, score):
        for i in range(score.size):
            miss[i], loss[i] = activation.miss_and_loss(score[i], turn)

    score = points("logistic")
    miss, loss = np.empty_like(score), np.empty_like(score)
    run(miss, loss, score)
    away = -score.astype(float) if turn else score.astype(float)
    expected = EXPECTED["logistic"](away)
    inside = expected.astype(np.float32) > 0
    np.testing.assert_allclose(miss[inside], (expected if turn else -expected)[inside], rtol=4 * EPS, atol=5e-45)
    np.testing.assert_allclose(loss, EXPECTED["softplus"](away), rtol=4 * EPS, atol=5e-45)


@pytest.mark.parametrize(
    ("name", "x", "expected"),
    [
        ("exp", [-np.inf, -2000, 0, 2000, np.inf], [0, 0, 1, np.inf, np.inf]),
        ("softplus", [-np.inf, -2000, 2000, np.inf], [0, 0, 2000, np.inf]),
        ("logistic", [-np.inf, -2000, 0, 2000, np.inf], [0, 0, 0.5, 1, 1]),
        ("rational", [-np.inf, -3, 0, 1, np.inf], [0, 0.125, 0.5, 0.75, 1]),
        ("tanh", [-np.inf, -2000, 0, 2000, np.inf], [-1, -1, 0, 1, 1]),
        ("relu", [-np.inf, -2, 0, 3, np.inf], [0, 0, 0, 3, np.inf]),
    ],
)
def test_exact_values_and_nan(name, x, expected):
    x = np.array([*x, np.nan], np.float32)
    y = np.empty_like(x)
    loop(name)(y, x)
    np.testing.assert_array_equal(y, [*expected, np.nan])


@pytest.mark.parametrize("name", sorted(activation.CODES.keys() - {"rational2023"}))  # its slope is wrong, see below
def test_slope_is_the_derivative(name):
    """Central differences in float64, from what backward has: the activation."""
    s = np.concatenate([np.linspace(-6, 6, 400), [-1e-3, 1e-3]])  # 0, where relu has a corner, is not among them
    a, above, below = s.copy(), s + 1e-6, s - 1e-6
    for values in (a, above, below):
        activate(values, activation.CODES[name])
    delta = np.full(s.size, 3.0)
    times_slope(delta, a, activation.CODES[name])
    np.testing.assert_allclose(delta, 3 * (above - below) / 2e-6, rtol=0, atol=1e-8)


def test_the_slope_of_2023_is_half_in_the_middle_and_two_ninths_at_the_ends():
    """As PVM_cuda computes it; the true one is 0 at the ends."""
    delta = np.ones(3)
    times_slope(delta, np.array([0.0, 0.5, 1.0]), activation.CODES["rational2023"])
    np.testing.assert_array_equal(delta, [2 / 9, 1 / 2, 2 / 9])


@pytest.mark.parametrize("name", EXPECTED)
def test_a_loop_over_an_array_is_vectorised(name):
    run = loop(name)
    x = np.zeros(8, np.float32)
    run(x.copy(), x)
    code = run.inspect_llvm(run.signatures[0])
    assert re.search(r"f(add|sub|mul|div|cmp)[^\n]*<\d+ x float>", code)
    assert not re.search(r"call[^\n]*@(expf?|expm1f?|log1pf?|tanhf?)\(", code)
