"""Collections of MLPs on the CPU, also one example at a time: cpu/vectors/online.py is the step of a batch of one."""

import numpy as np
import pytest

from bench.oracles.units import ACTIVATIONS, close
from cpu import units
from tests.support.host import HOST
from tests.support.units import WRITTEN, Case, check_ensemble, check_forward_and_backward, check_step

LARGE = [30, 7], [20, 9], [40, 11]


@pytest.mark.parametrize(("activation", "batch"), [*zip(ACTIVATIONS, [1, 5, 130, 5], strict=True)])
def test_forward_and_backward(activation, batch):
    check_forward_and_backward(Case(batch).on(), activation, 150)


def test_backward_without_x_grad():
    one, other = Case(5).on(), Case(5).on()
    for case, x_grad in ((one, True), (other, False)):
        case.forward("tanh")
        case.backward("tanh", x_grad)
    assert one.get("weight_grad").tobytes() == other.get("weight_grad").tobytes()
    assert np.isnan(other.get("x_grad")).all()


@pytest.mark.parametrize("momentum", [0, 0.9])
def test_update(momentum):
    case = Case(1, momentum, sizes=([300], [300], [200])).on()  # more numbers than one piece has
    velocity = case.host["velocity"].astype(float) if momentum else 0
    case.update(case.rate, momentum)
    assert not case.get("weight_grad").any()
    velocity = momentum * velocity - case.rate * case.host["weight_grad"].astype(float)
    close(case.get("weights"), case.host["weights"] + velocity, np.float32, 1)
    if momentum:
        close(case.get("velocity"), velocity, np.float32, 1)


@pytest.mark.parametrize(
    ("batch", "momentum", "activation"),
    [(1, 0, "rational"), (1, 0.9, "tanh"), (2, 0, "relu"), (5, 0.9, "logistic"), (8, 0, "tanh"), (32, 0.9, "rational")],
)
def test_step(batch, momentum, activation):
    check_step(Case(batch, momentum).on(), activation)


def test_a_step_of_large_units_is_the_same_by_other_products(monkeypatch):
    one, other = Case(40, 0.9, LARGE).on(), Case(40, 0.9, LARGE).on()
    one.step("tanh")
    monkeypatch.setattr(units, "SMALL", 40 * 40 * 20 - 1)
    other.step("tanh")
    for name in WRITTEN:
        np.testing.assert_allclose(other.get(name), one.get(name), rtol=1e-4, atol=1e-5, err_msg=name)
    # The order of sums tells which products they were.
    assert other.get("weights").tobytes() != one.get("weights").tobytes()


@pytest.mark.parametrize("batch", [1, 130])
def test_the_number_of_threads_does_not_change_a_bit(batch, check_threads):
    def run():
        case = Case(batch, 0.9, sizes=([150] * 9, [70] * 9, [150] * 9)).on()
        case.forward("logistic")
        case.backward("logistic")
        case.update(0.01, 0.9)
        case.step("logistic")
        return [case.get(name) for name in (*WRITTEN, "x_grad", "weight_grad")]

    check_threads(run)


@pytest.mark.parametrize(("batch", "momentum"), [(1, 0), (8, 0.9)])
def test_an_ensemble_is_as_many_units_alone(batch, momentum):
    check_ensemble(HOST, batch, momentum, steps=3)


def test_rates_of_their_own_where_a_blas_multiplies(monkeypatch):
    monkeypatch.setattr(units, "SMALL", 0)
    one, other, mixed = (Case(40, 0.9, LARGE).on() for _ in range(3))
    one.rate, other.rate, mixed.rate = 0.05, 0.2, np.array([0.05, 0.2], np.float32)
    for case in (one, other, mixed):
        case.step("tanh")

    def part(case, name, u):
        return case.get(name)[..., case.span(name, u)].tobytes()

    for u, case in enumerate((one, other)):
        for name in ("weights", "velocity", "loss", "y"):
            assert part(case, name, u) == part(mixed, name, u), (u, name)
    assert part(one, "weights", 1) != part(mixed, "weights", 1)
