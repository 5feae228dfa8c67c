"""exp, log1p and the activations as scalar functions that LLVM inlines and vectorises in a loop over an array.

Calls into libm do not vectorise. The float32 versions here are straight-line arithmetic, accurate to float32 precision.
float64, which tests use, goes through libm. Constants are exact float32, so they take the precision of the other operand. A NaN
stays a NaN. Callers that loop over arrays need `error_model="numpy"`: a check for division by zero is a branch.
"""

import math
from typing import Any

import numpy as np
from numba import extending
from numba.core import types

from cpu.runtime.compiled import called, inlined

intrinsic: Any = extending.intrinsic  # Numba's stubs do not model that callers omit the typing context
overload: Any = extending.overload

LOGISTIC, RATIONAL, TANH, RELU, RATIONAL_2023, LINEAR = range(6)
CODES = {"logistic": LOGISTIC, "rational": RATIONAL, "tanh": TANH, "relu": RELU, "rational2023": RATIONAL_2023}
CODES |= {"linear": LINEAR}

ZERO, HALF, ONE, TWO = map(np.float32, (0, 0.5, 1, 2))
LOG2_E = np.float32(math.log2(math.e))
LN2_HIGH = np.float32(0.693359375)  # 9 bits, so that k LN2_HIGH is exact
LN2_LOW = np.float32(math.log(2) - 0.693359375)
ROUND = np.float32(1.5 * 2**23)  # adding it rounds to an integer, which is in the lowest bits
ROUND_BITS = int(ROUND.view(np.int32))
EXP_LEAST, EXP_MOST = np.float32(-104), np.float32(89)  # exp is 0 below and infinite above
EXPM1_LEAST = np.float32(-20)  # expm1 is -1 below
EXPM1 = tuple(map(np.float32, (0.5, 0.16666577, 0.04166646, 0.00836318, 0.00139336)))  # (exp(r) - 1 - r) / r^2
LOG1P = tuple(map(np.float32, (0.6666664, 0.40007671, 0.28233956, 0.26867548)))  # (2 artanh(z) / z - 2) / z^2, of z^2

scalar = called(error_model="numpy", fastmath={"contract"})  # reassoc would undo ROUND
OPTIONS = {"error_model": "numpy", "fastmath": {"contract"}}


@intrinsic
def _bits(typing, x):
    """Returns the bits of a float32 as an int32."""

    def generate(context, builder, signature, arguments):
        return builder.bitcast(arguments[0], context.get_value_type(types.int32))

    return (types.int32(types.float32), generate) if x == types.float32 else None


@intrinsic
def _power_of_two(typing, k):
    """Returns 2^k for an int32 k in [-126, 127], by writing k to the exponent bits of a float32."""

    def generate(context, builder, signature, arguments):
        integer = context.get_value_type(types.int32)
        exponent = builder.shl(builder.add(arguments[0], integer(127)), integer(23))
        return builder.bitcast(exponent, context.get_value_type(types.float32))

    return (types.float32(types.int32), generate) if k == types.int32 else None


@scalar
def _reduce(x):
    """Returns k and expm1(r) with x = k ln 2 + r, |r| <= ln(2) / 2. Any k for a NaN, but never a trap."""
    shifted = x * LOG2_E + ROUND
    k = shifted - ROUND
    r = (x - k * LN2_HIGH) - k * LN2_LOW
    tail = EXPM1[0] + r * (EXPM1[1] + r * (EXPM1[2] + r * (EXPM1[3] + r * EXPM1[4])))
    return np.int32(_bits(shifted) - ROUND_BITS), r + r * r * tail


def exp(x: float) -> float:
    """e^x: relative error below 2e-7, gradual underflow to 0, overflow to infinity."""
    return math.exp(x)


@overload(exp, jit_options=OPTIONS)
def _exp(x):
    if x != types.float32:
        return lambda x: math.exp(x)

    def single(x):
        x = EXP_LEAST if x < EXP_LEAST else x
        x = EXP_MOST if x > EXP_MOST else x
        k, tail = _reduce(x)
        half = np.int32(k >> 1)  # 2^k may be subnormal or infinite, the factors of its halves are not
        return ((ONE + tail) * _power_of_two(half)) * _power_of_two(np.int32(k - half))

    return single


def expm1(x: float) -> float:
    """e^x - 1 for x <= 0: relative error below 2e-7, near 0 too."""
    return math.expm1(x)


@overload(expm1, jit_options=OPTIONS)
def _expm1(x):
    if x != types.float32:
        return lambda x: math.expm1(x)

    def single(x):
        k, tail = _reduce(EXPM1_LEAST if x < EXPM1_LEAST else x)
        scale = _power_of_two(k)
        return (scale - ONE) + scale * tail

    return single


def log1p(x: float) -> float:
    """log(1 + x) for x in [0, 1], as for softplus: relative error below 2e-7."""
    return math.log1p(x)


@overload(log1p, jit_options=OPTIONS)
def _log1p(x):
    if x != types.float32:
        return lambda x: math.log1p(x)

    def single(x):
        z = x / (TWO + x)
        zz = z * z
        return TWO * z + z * zz * (LOG1P[0] + zz * (LOG1P[1] + zz * (LOG1P[2] + zz * LOG1P[3])))

    return single


@scalar
def softplus(s):
    """log(1 + e^s), without overflow: the loss of a logistic regression whose target is 0."""
    return (s if s > 0 else ZERO) + log1p(exp(-abs(s)))


@scalar
def logistic(s):
    """1 / (1 + e^-s), relatively accurate at both ends."""
    e = exp(-abs(s))
    return (e if s < 0 else ONE) / (ONE + e)


@inlined(error_model="numpy", fastmath={"reassoc", "contract"})
def miss_and_loss(score, turn):
    """Returns turn - logistic(score), and -log p(turn): error and loss of a logistic regression with target `turn`, 0 or 1."""
    toward = score if turn else -score
    small = exp(-abs(score))
    wrong = (small if toward > 0 else ONE) / (ONE + small)
    return wrong if turn else -wrong, log1p(small) - (toward if toward < 0 else ZERO)


@scalar
def rational(s):
    """s / (2 (|s| + 1)) + 1/2, without cancellation, also for infinities."""
    rest = HALF / (abs(s) + ONE)
    return rest if s < 0 else ONE - rest


@scalar
def tanh(s):
    """-m / (m + 2) with m = expm1(-2 |s|), and the sign of s."""
    m = expm1(-TWO * abs(s))
    t = m / (m + TWO)
    return t if s < 0 else -t


@scalar
def relu(s):
    """max(s, 0)."""
    return ZERO if s < 0 else s


@scalar
def logistic_slope(a):
    """d a / d s from the activation a itself, as the three below."""
    return a * (ONE - a)


@scalar
def rational_slope(a):
    """(1 - w)^2 / 2 with w = |2 a - 1| = |s| / (|s| + 1)."""
    w = ONE - abs(TWO * a - ONE)
    return HALF * w * w


@scalar
def rational2023_slope(a):
    """Returns PVM_cuda's 2023 slope of the rational activation, with a sign slip: 1 / (2 (1 + w / (1 + w))^2)."""
    w = abs(TWO * a - ONE)
    root = ONE + w / (ONE + w)
    return HALF / (root * root)


@scalar
def tanh_slope(a):
    """Returns the slope of tanh from its value a."""
    return ONE - a * a


@scalar
def relu_slope(a):
    """Returns the slope of relu from its value a; 0 at 0."""
    return ONE if a > 0 else ZERO


@called(_nrt=False, error_model="numpy")
def activate(values, code):
    """Replaces every s of a contiguous vector by its activation; code: one of CODES; LINEAR changes nothing."""
    if code == LOGISTIC:
        for i in range(values.size):
            values[i] = logistic(values[i])
    elif code == RATIONAL or code == RATIONAL_2023:
        for i in range(values.size):
            values[i] = rational(values[i])
    elif code == TANH:
        for i in range(values.size):
            values[i] = tanh(values[i])
    elif code == RELU:
        for i in range(values.size):
            values[i] = relu(values[i])


@called(_nrt=False, error_model="numpy")
def times_slope(delta, values, code):
    """delta *= d activation / d s, from the activations in `values`; both contiguous vectors."""
    if code == LOGISTIC:
        for i in range(values.size):
            delta[i] *= logistic_slope(values[i])
    elif code == RATIONAL:
        for i in range(values.size):
            delta[i] *= rational_slope(values[i])
    elif code == TANH:
        for i in range(values.size):
            delta[i] *= tanh_slope(values[i])
    elif code == RATIONAL_2023:
        for i in range(values.size):
            delta[i] *= rational2023_slope(values[i])
    elif code == RELU:
        for i in range(values.size):
            delta[i] *= relu_slope(values[i])
