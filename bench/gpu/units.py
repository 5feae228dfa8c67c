"""The fused online step of collections of small MLPs on a GPU: equal units and ragged ones, against PyTorch.

Its rivals are those of bench/step/units.py: "bmm + SGD", the usual code with autograd and torch.optim.SGD, and "bmm by hand",
the fastest form that we know. Ragged units are padded, which costs PyTorch the extra traffic in its record.
"""

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import numpy as np

from bench.gpu.machine import Contest, Machine
from bench.harness.measure import near
from bench.step.units import ACTIVATION, RATE, Problem, Torch, equal
from hybrid.units import UnitLayout, unit_layout

UNITS, QUICK_UNITS = 119 * 119, 4
RAGGED = ((400, 2001), (49, 101), (100, 301))  # ranges of inputs, hidden, outputs
PARAMETERS = 200_000_000  # approximate total of the ragged units
MOMENTUM = 0.9
RIVALS = {"autograd": "bmm + SGD", "bmm": "bmm by hand"}


def of_one_size(machine: Machine, quick: bool) -> Iterator[Callable[[], Contest]]:
    """Yields factories of the contests of units of one size, with one example a step: without and with momentum."""
    layout = equal(QUICK_UNITS if quick else UNITS)
    for momentum in (0.0, MOMENTUM):
        yield partial(contest, machine, Problem(layout, 1, momentum))


def ragged(machine: Machine, quick: bool) -> Iterator[Callable[[], Contest]]:
    """Yields the factory of the contest of units of many sizes, with one example a step."""
    yield partial(contest, machine, Problem(ragged_layout(2 * 10**5 if quick else PARAMETERS), 1, 0.0, "units.ragged"))


def ragged_layout(parameters: int) -> UnitLayout:
    """Draws unit sizes from RAGGED up to this number of parameters."""
    rng = np.random.default_rng(5)
    most = -(-parameters // (RAGGED[1][0] * (RAGGED[0][0] + 1))) + 1
    n, h, o = (rng.integers(*ends, most) for ends in RAGGED)
    many = int(np.searchsorted(np.cumsum(h * (n + 1) + o * (h + 1)), parameters)) + 1
    return unit_layout(n[:many], h[:many], o[:many])


def contest(machine: Machine, problem: Problem) -> Contest:
    """Returns ours and PyTorch's at one problem."""
    params = {"units": problem.units, "batch": problem.batch, "momentum": problem.momentum}
    found = Contest(machine, problem.name, params, problem.parameters, "parameters/s", problem.moved)
    _ours(found, problem)
    for kind in RIVALS if machine.torch else ():
        _torch(found, problem, kind)
    return found


def _ours(found: Contest, problem: Problem) -> None:
    from gpu import units

    device, layout, batch = found.machine.device, problem.layout, problem.batch
    first = problem.velocity()
    weights, velocity = device.from_host(problem.weights()), None if first is None else device.from_host(first)
    x, target = device.from_host(problem.x), device.from_host(problem.target)
    loss = device.empty(problem.units, np.float32)
    y, y_grad = (device.empty(target.shape, np.float32) for _ in range(2))
    hidden, hidden_grad = (device.empty((batch, int(layout.h_at[-1])), np.float32) for _ in range(2))
    plan = found.do(units.plan, layout)
    found.do(plan.bins, batch)
    written = (loss, y, hidden, weights, velocity, y_grad, hidden_grad)
    read = (plan, x, target, RATE, problem.momentum, ACTIVATION)
    kinds = "; ".join(f"{each.many:,} units {each.kind}" for each in plan.bins(batch) or []) or "units by GEMM"
    more = {"bytes_per_parameter": problem.counted, "variant": kinds}

    def sampled(array: Any) -> np.ndarray:
        return np.concatenate([device.to_host(array[begin:end]) for begin, end in problem.spans()])

    def check():
        """Checks the first step."""
        problem.check(sampled(weights), None if velocity is None else sampled(velocity))
        near("loss", device.to_host(loss)[problem.sample], problem.loss)

    found.ours(lambda: units.step(*written, *read), check, more)


def _torch(found: Contest, problem: Problem, kind: str) -> None:
    made = Torch(problem, kind, "cuda")
    more = {"bytes_per_parameter": problem.counted, "padding": made.padding}
    found.torch(f"{'padded ' * (made.padding > 1)}{RIVALS[kind]}", made.step, made.check, more)
