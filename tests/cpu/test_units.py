"""Collections of MLPs on the CPU, also one example at a time: cpu/vectors/online.py is the step of a batch of one."""

import numba
import numpy as np
import pytest

from bench.oracles import units as oracle
from bench.oracles.units import ACTIVATIONS, RAGGED, SIXTY, close
from cpu import units
from hybrid.units import unit_layout


class Case:
    """Random arrays of one call, and the names that the contract gives them."""

    def __init__(self, batch, momentum=0.0, dtype=np.float32, sizes=RAGGED, seed=0):
        rng = np.random.default_rng([seed, batch])
        self.layout = unit_layout(*sizes)
        *_, w, x, h, y = (int(at[-1]) for at in self.layout)
        self.weights = rng.normal(0, 0.2, w).astype(dtype)
        self.velocity = rng.normal(0, 0.02, w).astype(dtype) if momentum else None
        self.weight_grad = rng.normal(0, 0.1, w).astype(dtype)
        self.x = rng.normal(size=(batch, x)).astype(dtype)
        self.target = rng.random((batch, y)).astype(dtype)
        self.y_grad = rng.normal(size=(batch, y)).astype(dtype)
        self.y, self.hidden = np.full((batch, y), np.nan, dtype), np.full((batch, h), np.nan, dtype)
        self.hidden_grad, self.x_grad = np.full_like(self.hidden, np.nan), np.full_like(self.x, np.nan)
        self.loss = np.full(len(sizes[0]), np.nan, dtype)
        self.rate, self.momentum = 0.05, momentum

    def forward(self, activation):
        units.forward(self.y, self.hidden, self.layout, self.weights, self.x, activation)

    def backward(self, activation, x_grad=True):
        written = (self.x_grad if x_grad else None, self.weight_grad, self.y_grad, self.hidden_grad)
        units.backward(*written, self.layout, self.weights, self.y, self.hidden, self.x, activation)

    def step(self, activation):
        written = (self.loss, self.y, self.hidden, self.weights, self.velocity, self.y_grad, self.hidden_grad)
        units.step(*written, self.layout, self.x, self.target, self.rate, self.momentum, activation)

    def alone(self, u):
        """A case of unit u alone, with copies of its arrays."""
        found = Case.__new__(Case)
        sizes, (w_at, x_at, h_at, y_at) = self.layout[:3], self.layout[3:]
        found.layout = unit_layout(*(size[u : u + 1] for size in sizes))
        found.rate, found.momentum = self.rate, self.momentum
        cuts = {"weights": w_at, "velocity": w_at, "weight_grad": w_at, "x": x_at, "x_grad": x_at, "hidden": h_at}
        cuts |= {"hidden_grad": h_at, "y": y_at, "y_grad": y_at, "target": y_at, "loss": np.arange(len(h_at))}
        for name, at in cuts.items():
            array = getattr(self, name)
            setattr(found, name, None if array is None else array[..., at[u] : at[u + 1]].copy())
        return found

    def written(self):
        """Copies of every array, by name."""
        return {name: value.copy() for name, value in vars(self).items() if isinstance(value, np.ndarray)}


@pytest.mark.parametrize(("activation", "batch"), [*zip(ACTIVATIONS, [1, 5, 130, 5], strict=True)])
def test_forward_and_backward(activation, batch):
    case, dtype = Case(batch), np.float32
    case.forward(activation)
    hidden, y = oracle.forward(case.layout, case.weights, case.x, activation)
    close(case.hidden, hidden, dtype, 150)
    close(case.y, y, dtype, 150)

    # from the same activations: relu's slope jumps where a rounding changes the sign
    before = case.weight_grad.astype(float)
    given = (case.y_grad.astype(float), case.hidden.astype(float), case.y.astype(float))
    x_grad, weight_grad = oracle.backward(case.layout, case.weights, *given, case.x, activation)
    case.backward(activation)
    close(case.x_grad, x_grad, dtype, 150)
    close(case.weight_grad, before + weight_grad, dtype, batch)


def test_backward_without_x_grad():
    one, other = Case(5), Case(5)
    for case, x_grad in ((one, True), (other, False)):
        case.forward("tanh")
        case.backward("tanh", x_grad)
    assert one.weight_grad.tobytes() == other.weight_grad.tobytes()
    assert np.isnan(other.x_grad).all()


@pytest.mark.parametrize("momentum", [0, 0.9])
def test_update(momentum):
    case, dtype = Case(1, momentum, sizes=([300], [300], [200])), np.float32  # more numbers than one piece has
    weights, velocity = case.weights.astype(float), 0 if case.velocity is None else case.velocity.astype(float)
    gradient = case.weight_grad.astype(float)
    units.update(case.weights, case.velocity, case.weight_grad, case.rate, momentum)
    assert not case.weight_grad.any()
    velocity = momentum * velocity - case.rate * gradient
    close(case.weights, weights + velocity, dtype, 1)
    if case.velocity is not None:
        close(case.velocity, velocity, dtype, 1)


@pytest.mark.parametrize(
    ("batch", "momentum", "activation"),
    [(1, 0, "rational"), (1, 0.9, "tanh"), (2, 0, "relu"), (5, 0.9, "logistic"), (8, 0, "tanh"), (32, 0.9, "rational")],
)
def test_step(batch, momentum, activation):
    case, dtype = Case(batch, momentum), np.float32
    weights, speed = case.weights.astype(float), None if case.velocity is None else case.velocity.astype(float)
    hidden, y = oracle.forward(case.layout, weights, case.x, activation)
    case.step(activation)
    close(case.hidden, hidden, dtype, 150)
    close(case.y, y, dtype, 150)

    found = (case.hidden, case.y, case.x, case.target, case.rate, momentum, activation)
    loss, weights, speed = oracle.step(case.layout, weights, speed, *found)
    close(case.weights, weights, dtype, 150 * batch)
    if case.velocity is not None:
        close(case.velocity, speed, dtype, 150 * batch)
    close(case.loss, loss, dtype, 150 * batch)


def test_a_step_of_large_units_is_the_same_by_other_products(monkeypatch):
    sizes = ([30, 7], [20, 9], [40, 11])
    one, other = Case(40, 0.9, sizes=sizes), Case(40, 0.9, sizes=sizes)
    one.step("tanh")
    monkeypatch.setattr(units, "SMALL", 40 * 40 * 20 - 1)
    other.step("tanh")
    found = other.written()
    for name, array in one.written().items():
        if not np.isnan(array).any():
            np.testing.assert_allclose(found[name], array, rtol=1e-4, atol=1e-5, err_msg=name)
    assert found["weights"].tobytes() != one.weights.tobytes()  # the order of sums tells which products they were


@pytest.mark.parametrize("batch", [1, 130])
def test_the_number_of_threads_does_not_change_a_bit(batch, check_threads):
    def run():
        case = Case(batch, 0.9, sizes=([150] * 9, [70] * 9, [150] * 9))
        case.forward("logistic")
        case.backward("logistic")
        units.update(case.weights, case.velocity, case.weight_grad, 0.01, 0.9)
        case.step("logistic")
        return case.written().values()

    check_threads(run)


@pytest.mark.parametrize(("batch", "momentum"), [(1, 0), (8, 0.9)])
def test_an_ensemble_is_as_many_units_alone(batch, momentum, threads):
    """60 MLPs of four sizes, each with a rate of its own, for three steps: to the bit as many runs of one unit."""
    together = Case(batch, momentum, sizes=SIXTY)
    alone = [together.alone(u) for u in range(60)]
    together.rate = np.geomspace(1e-3, 1, 60).astype(np.float32)
    for _ in range(3):
        together.step("logistic")
    numba.set_num_threads(1)
    for u, case in enumerate(alone):
        case.rate = float(together.rate[u])
        for _ in range(3):
            case.step("logistic")
        found = together.alone(u).written()
        for name, array in case.written().items():
            assert array.tobytes() == found[name].tobytes(), (u, name)


def test_rates_of_their_own_where_a_blas_multiplies(monkeypatch):
    monkeypatch.setattr(units, "SMALL", 0)
    one, other, mixed = (Case(40, 0.9, sizes=([30, 7], [20, 9], [40, 11])) for _ in range(3))
    one.rate, other.rate, mixed.rate = 0.05, 0.2, np.array([0.05, 0.2], np.float32)
    for case in (one, other, mixed):
        case.step("tanh")
    for u, case in enumerate((one, other)):
        for name in ("weights", "velocity", "loss", "y"):
            assert getattr(case.alone(u), name).tobytes() == getattr(mixed.alone(u), name).tobytes(), (u, name)
    assert one.alone(1).weights.tobytes() != mixed.alone(1).weights.tobytes()
