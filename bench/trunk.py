"""A training step of the dense part, small and large, at one thread and at all, beside PyTorch and the products alone."""

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

import cpu  # noqa: F401  # says how threads wait, before PyTorch reads it
from bench.measure import Work, append, measure, show
from bench.peers import peer
from bench.trunk_step import Net, Step, ours, torchs

NETS = (
    Net((256, 256, 128), "tanh", "tanh", "sgd"),
    Net((512, 512, 256), "tanh", "tanh", "sgd"),
    Net((784, 2048, 1024, 10), "relu", "linear", "adam"),
)
BATCHES = (64, 256, 1024, 4096)
COMPILED = 1024  # the batch that PyTorch also compiles a module for: half a minute each, for the same products


def run(arguments) -> None:
    """Every net and batch: whole steps, then the products of one, each by one call of a BLAS that may be the bound."""
    import numba

    nets, batches = ((Net((20, 30, 10), "tanh", "tanh", "sgd"),), (16,)) if arguments.quick else (NETS, BATCHES)
    for net in nets:
        for batch in batches:
            step = Step(net, batch)
            for threads in sorted({1, arguments.threads}):
                numba.set_num_threads(threads)
                for works in (_steps(step, threads), _products(step, threads)):
                    records = measure(list(works), arguments.repeat)
                    show(records)
                    append(arguments.json, records)


def _steps(step: Step, threads: int) -> Iterator[Work]:
    yield ours(step, threads)
    if peer("torch"):
        for how in ("fused", "compile") if step.batch == COMPILED else ("fused",):
            yield torchs(step, how, threads)


def _products(step: Step, threads: int) -> Iterator[Work]:
    """All products of a step: as cpu/product.py cuts them; whole, on one thread, by SciPy's BLAS; and whole by PyTorch's."""
    from cpu import product
    from cpu.blas import gemm
    from cpu.compiled import launched

    spare = product.workspace(np.float32)

    @launched(cache=False)
    def whole(out, a, b, keep):
        gemm(out, a, b, 1.0, keep)

    def cut(out: np.ndarray, a: np.ndarray, b: np.ndarray, keep: int) -> None:
        product.product(out, a, b, keep, spare if keep else None)

    yield _rival(step, "ours", cut, threads)
    yield _rival(step, "SciPy's BLAS, whole, one thread", whole, threads)
    if torch := peer("torch"):
        torch.set_num_threads(threads)

        def multiply(out: Any, a: Any, b: Any, keep: int) -> None:
            torch.addmm(out, a, b, beta=keep, out=out)

        yield _rival(step, f"torch {torch.__version__} addmm", multiply, threads, torch.from_numpy)


def _rival(step: Step, who: str, multiply: Callable[..., None], threads: int, given: Callable = np.asarray) -> Work:
    """All products of a step, one after another; `given` makes of an array what `multiply` takes."""
    cases = _cases(step)
    taken = [(*map(given, case[:3]), case[3]) for case in cases]

    def run() -> None:
        for case in taken:
            multiply(*case)

    def check() -> None:
        for out, a, b, _ in cases:
            sample = np.linspace(0, len(out) - 1, 3).astype(int)
            expected = a[sample].astype(float) @ b
            np.testing.assert_allclose(out[sample], expected, rtol=0, atol=1e-5 * a.shape[1] ** 0.5)

    timed = step.work(who, run, lambda: step.out, lambda: step.trunk.weights, threads)
    timed.work, timed.check = "trunk.products", check
    return timed


def _cases(step: Step) -> list[tuple[np.ndarray, np.ndarray, np.ndarray, int]]:
    """Of each layer out, a, b and what is kept of out: forward, the gradient of its input, and that of its matrix."""
    rng, found = np.random.default_rng(0), []
    for layer in step.trunk.layers:
        x, out = (rng.standard_normal((step.batch, width), np.float32) for width in (layer.inputs, layer.outputs))
        matrix = rng.standard_normal((layer.outputs, layer.inputs), np.float32)
        found += [(np.empty_like(out), x, matrix.T, 0), (np.empty_like(x), out, matrix, 0)]
        found += [(np.zeros_like(matrix), out.T, x, 1)]
    return found
