"""Adam and Adagrad of the dense part: one update alone, and whole steps of FCN-R, beside PyTorch's fused optimisers."""

import statistics
import time
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

import cpu  # noqa: F401  # says how threads wait, before PyTorch reads it
from bench.measure import Work, append, measure, show
from bench.peers import peer
from bench.trunk_step import RATE, Net, Step, first, ours, torch_optimiser, torchs

MILLIONS = (10, 100)
SIZES, BATCH = (784, 2048, 4096, 1024, 10), 256  # FCN-R of Shi et al. 2016
MOVED = {"adam": 32, "adagrad": 24}  # bytes a parameter: weight, gradient and state are read and written


def run(arguments) -> None:
    """Updates of 10 and 100 million parameters, then whole steps; both optimisers."""
    import numba

    from cpu.bandwidth import read_modify_write

    numba.set_num_threads(arguments.threads)
    reached = statistics.median(read_modify_write(16 if arguments.quick else 1024))
    for optimiser in MOVED:
        for size in (100_000,) if arguments.quick else [million * 10**6 for million in MILLIONS]:
            _report(list(_updates(optimiser, size, arguments.threads)), arguments, reached)
        sizes, batch = ((78, 20, 41, 10, 10), 32) if arguments.quick else (SIZES, BATCH)
        # as where pixels come in: nobody wants the gradient of the inputs
        step = Step(Net(sizes, "relu", "linear", optimiser), batch, x_grad=False)
        _report(list(_steps(step, arguments.threads)), arguments, None)


def _report(works: list[Work], arguments, reached: float | None) -> None:
    records = measure(works, arguments.repeat, reached)
    show(records)
    append(arguments.json, records)


# One update


def _updates(optimiser: str, size: int, threads: int) -> Iterator[Work]:
    """Rivals get the same gradient anew before each update, off the clock: one of zeros would soon make states denormal."""
    rng = np.random.default_rng(0)
    weights, source = (rng.standard_normal(size, np.float32) for _ in range(2))
    sample = np.linspace(0, size - 1, min(size, 10_000)).astype(int)
    expected = first(optimiser, weights[sample], source[sample])

    def work(who: str, moves: np.ndarray, grad: np.ndarray, update: Callable[[], Any]) -> Work:
        def turn():
            np.copyto(grad, source)
            start = time.perf_counter()
            update()
            return time.perf_counter() - start

        def check():
            np.testing.assert_allclose(moves[sample], expected, rtol=1e-6, atol=1e-7)

        params = {"parameters": size, "optimiser": optimiser}
        sizes = (size, "parameters/s")
        moved = MOVED[optimiser] * size
        return Work("trunk.update", who, params, *sizes, turn, check, moved=moved, threads=threads, own_clock=True)

    yield work("ours", *_ours(optimiser, weights))
    if torch := peer("torch"):
        torch.set_num_threads(threads)
        for how, cleared in (("fused", False), ("fused", True), ("foreach", False)):
            who = f"torch {torch.__version__} {how}{', clears too' * cleared}"
            yield work(who, *_torch(optimiser, weights, how, cleared))


def _ours(optimiser: str, weights: np.ndarray) -> tuple[np.ndarray, np.ndarray, Callable[[], Any]]:
    """Weights, gradient and an update, which clears the gradient too."""
    from cpu import optimiser as kernels
    from hybrid.contract import Move

    own, grad = weights.copy(), np.zeros_like(weights)
    mean, squares = np.zeros_like(weights), np.zeros_like(weights)
    move, made = Move(RATE, 1.0, 0.0, None), iter(range(1, 10**9))
    if optimiser == "adam":
        return own, grad, lambda: kernels.adam(own, mean, squares, grad, move, (0.9, 0.999), next(made), False)
    return own, grad, lambda: kernels.adagrad(own, squares, grad, move)


def _torch(
    optimiser: str, weights: np.ndarray, how: str, clears: bool
) -> tuple[np.ndarray, np.ndarray, Callable[[], Any]]:
    import torch

    parameter = torch.nn.Parameter(torch.from_numpy(weights.copy()))
    parameter.grad = torch.zeros_like(parameter)
    moves = torch_optimiser(optimiser, [parameter], how)

    def update():
        moves.step()
        if clears:
            moves.zero_grad(set_to_none=False)

    return parameter.detach().numpy(), parameter.grad.numpy(), update


# A whole step


def _steps(step: Step, threads: int) -> Iterator[Work]:
    yield ours(step, threads)
    if peer("torch"):
        for how in ("fused", "foreach"):
            yield torchs(step, how, threads)
