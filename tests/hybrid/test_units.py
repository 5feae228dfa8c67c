"""hybrid.Units against the float64 oracle of bench/oracles/units.py, and what it refuses."""

import copy
import pickle

import numpy as np
import pytest

from bench.oracles import units as oracle
from bench.oracles.units import close
from hybrid import Units
from hybrid.units import unit_layout

COUNT, SIZES = 5, (7, 6, 3)
RAGGED = ([7, 3, 1, 12, 4], [5, 2, 1, 33, 3], [6, 2, 1, 3, 8])


def examples(made, batch, seed=0):
    rng = np.random.default_rng(seed)
    x, target = (rng.random((batch, int(at[-1]))).astype(np.float32) for at in (made.layout.x_at, made.layout.y_at))
    return x, target


def shaped(made, name, values, batch):
    return values.reshape(made._one[name] if batch == 1 else (batch, *made._one[name]))


@pytest.mark.parametrize("batch, momentum, sizes", [(1, 0, RAGGED), (1, 0.9, SIZES), (4, 0, SIZES), (4, 0.9, RAGGED)])
def test_steps_are_those_of_the_oracle(batch, momentum, sizes):
    made = Units(COUNT, *sizes, momentum=momentum, device="cpu")
    x, target = examples(made, batch)
    given = shaped(made, "x", x, batch), shaped(made, "target", target, batch)
    velocity = np.zeros(made.weights.size) if momentum else None
    for rate in (0.2, 0.5):
        weights = made.weights
        hidden, y = oracle.forward(made.layout, weights, x, "logistic")
        found = made(given[0])
        assert found.shape == given[1].shape and found.dtype == np.float32
        close(found.reshape(batch, -1), y, np.float32, 33)
        state = (made.layout, weights, velocity, hidden, y, x, target, rate, momentum, "logistic")
        loss, after, velocity = oracle.step(*state)
        close(made.step(*given, rate), loss, np.float32, 33)
        close(made.weights, after, np.float32, 33)
        velocity = velocity if momentum else None


def test_a_rate_a_unit_and_weights_that_are_assigned():
    made, alone = Units(3, 4, 5, 2, device="cpu"), Units(1, 4, 5, 2, seed=1, device="cpu")
    first = alone.weights
    made.weights = np.tile(first, 3)
    first[:] = 0  # it was copied
    x, target = np.random.default_rng(0).random((2, 4)), np.random.default_rng(1).random((2, 2))
    for _ in range(3):
        made.step(np.stack([x] * 3, axis=1), np.stack([target] * 3, axis=1), [0, 0.3, 1])
        alone.step(x[:, None], target[:, None], 0.3)
    for one, other in zip(made.weights_of(1), alone.weights_of(0), strict=True):
        assert one.tobytes() == other.tobytes()
    assert [part.shape for part in made.weights_of(0)] == [(5, 4), (5,), (2, 5), (2,)]
    assert made.weights_of(0)[0].tobytes() != made.weights_of(1)[0].tobytes()


ONE = np.ones((COUNT, 7)), np.ones((COUNT, 3))
BAD = {
    "x flat": (lambda made: made.step(np.ones((1, 35)), ONE[1]), r"x: found float64 \(1, 35\), expected numbers \(5, 7\) or"),
    "no example": (lambda made: made.step(np.ones((0, COUNT, 7)), np.ones((0, COUNT, 3))), r"x: found .*\(0, 5, 7\)"),
    "target of 3 numbers": (lambda made: made.step(ONE[0], np.ones(3)), r"target: found .*\(3,\), .* \(5, 3\) or \(B, 5, 3\)"),
    "NaN": (lambda made: made.step(ONE[0] * np.nan, ONE[1]), r"x\[0\]: found NaN or infinity"),
    "uneven": (lambda made: made([[1], [1, 2]]), "x: found rows of different lengths"),
    "rate": (lambda made: made.step(*ONE, -1), "rate: found -1, expected a finite number of at least 0"),
    "rates": (lambda made: made.step(*ONE, np.ones(4)), r"rate: found float64 \(4,\), expected numbers \(5,\)"),
    "weights": (lambda made: setattr(made, "weights", np.ones(9)), r"weights: found float64 \(9,\), expected numbers \(345,\)"),
    "unit": (lambda made: made.weights_of(5), "unit: found 5, expected a whole number from 0 to 4"),
    "gradient": (lambda made: made.backward(np.ones((2, COUNT, 7)), ONE[1], 0.1), "gradient: found 1 examples, expected 2"),
    "NaN backward": (lambda made: made.backward(ONE[0], ONE[1] * np.inf, 0.1), "NaN or infinity"),
    "rate backward": (lambda made: made.backward(*ONE, -1), "rate: found -1"),
}  # fmt: skip


@pytest.mark.parametrize("bad", BAD)
def test_what_does_not_fit_is_refused_and_nothing_moves(bad):
    made = Units(COUNT, *SIZES, momentum=0.5, device="cpu")
    before = made.weights.tobytes()
    call, message = BAD[bad]
    with pytest.raises(ValueError, match=message):
        call(made)
    assert made.weights.tobytes() == before
    assert np.isfinite(made.step(*ONE)).all()


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"count": 0}, "count: found 0"),
        ({"hidden": [1, 2]}, r"hidden: found int64 \(2,\), expected a whole number, or \(5,\), one per unit"),
        ({"hidden": [1, 2, 0, 4, 5]}, r"hidden\[2\] is 0"),
        ({"activation": "sigmoid"}, "activation: found 'sigmoid', expected one of logistic"),
        ({"momentum": 1}, "momentum: found 1, expected a number below 1"),
        ({"inputs": 2**31 - 1, "hidden": 2**31 - 1}, "weights; units have at most 2.62 together"),
    ],
)
def test_what_cannot_be_made(change, message):
    sizes = dict(zip(("inputs", "hidden", "outputs"), SIZES, strict=True))
    with pytest.raises(ValueError, match=message):
        Units(**{"count": COUNT, "device": "cpu", **sizes, **change})


def test_weights_begin_uniform_within_the_bound_of_glorot():
    made = Units(20, 7, 9, 5, seed=3, device="cpu")
    for part, bound in ((0, np.sqrt(6 / 16)), (2, np.sqrt(6 / 14))):
        drawn = np.concatenate([made.weights_of(unit)[part].ravel() for unit in range(20)]) / bound
        assert -1 <= drawn.min() < -0.98 and 0.98 < drawn.max() <= 1 and abs(drawn.mean()) < 0.1
        assert not made.weights_of(0)[part + 1].any()


@pytest.mark.parametrize(
    "sizes, message",
    [
        (([], [], []), "inputs: expected a list of whole numbers"),
        (([1], [1], [3, 4]), "outputs has 2 entries and inputs 1"),
        (([1], [1], [2**32 + 1]), r"outputs\[0\] is 4294967297; a unit has at most 2147483647"),  # its int32 is 1
    ],
)
def test_sizes_that_are_none_are_refused(sizes, message):
    with pytest.raises(ValueError, match=message):
        unit_layout(*sizes)


@pytest.mark.parametrize(("momentum", "sizes"), [(0.0, SIZES), (0.9, RAGGED)])
def test_backward_of_a_squared_error_is_a_step(momentum, sizes):
    """Of the same loss the two move units alike; tests/hybrid/torch/test_units.py has the gradient of x."""
    stepping, going_back = (Units(COUNT, *sizes, momentum=momentum, device="cpu") for _ in range(2))
    x, target = examples(stepping, 3)
    given, wanted = shaped(stepping, "x", x, 3), shaped(stepping, "target", target, 3)
    for rate in (0.3, None, 0.2):
        before = going_back.weights
        found = going_back.backward(given, going_back(given) - wanted, rate)
        assert found.shape == given.shape and found.dtype == np.float32
        if rate is None:
            assert going_back.weights.tobytes() == before.tobytes()
            continue
        stepping.step(given, wanted, rate)
        np.testing.assert_allclose(going_back.weights, stepping.weights, rtol=1e-5, atol=1e-6)


def loaded(made, file):
    made.save(file)
    return Units.load(file, device="cpu")


COPIES = loaded, lambda made, _: copy.deepcopy(made), lambda made, _: pickle.loads(pickle.dumps(made))


@pytest.mark.parametrize("again", COPIES)
def test_a_copy_and_what_was_saved_go_on_to_the_same_bytes_apart(again, tmp_path):
    made = Units(COUNT, *RAGGED, activation="tanh", momentum=0.5, device="cpu")
    x, target = examples(made, 2)
    made.step(x, target)
    other = again(made, tmp_path / "units.npz")
    made.step(x, target)
    assert other.weights.tobytes() != made.weights.tobytes() and other.activation == "tanh"
    other.step(x, target)
    assert other.weights.tobytes() == made.weights.tobytes()


def test_units_of_which_one_has_diverged_are_saved_and_copied(tmp_path):
    made = Units(2, 4, 5, 2, activation="relu", momentum=0.5, device="cpu")
    with np.errstate(all="ignore"):
        for _ in range(9):
            loss = made.step(np.ones((2, 4)), np.ones((2, 2)), [1e20, 0.01])
    assert np.isnan(made.weights).any() and np.isfinite(loss[1])
    for again in (loaded(made, tmp_path / "units.npz"), copy.deepcopy(made)):
        assert again.weights.tobytes() == made.weights.tobytes()
