"""An ensemble: MLPs of one shape, each with inputs, targets and a rate of its own; in one call, or one after another."""

import numpy as np

from bench.measure import Work
from bench.units_problem import Collection, Problem

NET, EXAMPLES, STEPS = (64, 32, 10), 16, 3  # steps that are compared with those of units alone
RATES = 1e-3, 1.0  # the lowest and the highest


def problem(name: str, nets: int, momentum: float) -> Problem:
    """MLPs with inputs, targets and rates of their own."""
    return Problem(nets, EXAMPLES, momentum, name, NET, np.geomspace(*RATES, nets).astype(np.float32))


def together(problem: Problem, threads: int) -> Work:
    """Ours, all in one call; it is checked to be as many separate runs, to the bit."""
    made = Collection(problem, problem.weights())

    def check():
        problem.check(problem.sampled(made.weights))
        check_alone(problem)

    return problem.work("ours", made.step, check, threads)


def alone(problem: Problem, threads: int) -> Work:
    """The same by a call for each MLP."""
    weights = problem.weights()
    units = separate(problem, weights)

    def step():
        for unit in units:
            unit.step()

    return problem.work("ours, one call an MLP", step, lambda: problem.check(problem.sampled(weights)), threads)


def separate(problem: Problem, weights: np.ndarray) -> list[Collection]:
    """A collection of one unit for each, whose weights are parts of the array."""
    return [Collection(problem, part, u, 1) for u, part in enumerate(np.split(weights, problem.units))]


def check_alone(problem: Problem) -> None:
    """Raise unless some steps of all units in one call have the bytes of as many runs of one unit each."""
    every, each = problem.weights(), problem.weights()
    whole = Collection(problem, every)
    for _ in range(STEPS):
        whole.step()
    for unit in separate(problem, each):
        for _ in range(STEPS):
            unit.step()
    if every.tobytes() != each.tobytes():
        differing = (every != each).reshape(problem.units, -1).any(1).sum()
        raise ValueError(f"{differing} of {problem.units} MLPs differ from runs of their own")
