"""The fused online step of 14,161 small MLPs, 211 M parameters, beside PyTorch (bmm, manual backward) and torch.compile."""

import functools
import statistics
import time
from collections.abc import Callable

import numpy as np

from bench.measure import Work, append, measure, show
from bench.peers import peer
from hybrid.layout import unit_layout

INPUTS, HIDDEN, OUTPUTS = 150, 49, 150
RATE, SAMPLE, SEED = 0.01, 7, 0  # SAMPLE: units checked against the oracle, spread over all


def run(arguments) -> None:
    """B = 1 without and with momentum, then B = 8, 16 and 32."""
    import numba

    numba.set_num_threads(arguments.threads)
    units = 12 * 12 if arguments.quick else 119 * 119
    for batch, momentum in ((1, 0.0), (1, 0.9), (8, 0.0), (16, 0.0), (32, 0.0)):
        problem = Problem(units, batch, momentum)
        works = [_ours(problem, arguments.threads), *_torch(problem, arguments.threads, compiled=not arguments.quick)]
        machine = bandwidth(64 if arguments.quick else 1024, arguments.threads)
        blas = gemm(batch, arguments.threads)
        _, small, *records = measure([machine, blas, *works], arguments.repeat)
        for work, record in zip(works, records, strict=True):
            turns = zip(work.samples, machine.samples, strict=True)
            record["bandwidth_share"] = statistics.median(
                problem.moved / seconds / (machine.amount / streamed) for seconds, streamed in turns
            )
            record["gemm_share"] = problem.operations / record["seconds"] / small["value"]
        reached = machine.amount / statistics.median(machine.samples)
        show(records)
        print(_bound(problem, records[0], reached, small["value"]), flush=True)
        append(arguments.json, records)


class Problem:
    """The sizes, inputs and targets that all rivals share, their first weights, and what one step makes of them."""

    def __init__(self, units: int, batch: int, momentum: float):
        self.units, self.batch, self.momentum = units, batch, momentum
        self.layout = unit_layout([INPUTS] * units, [HIDDEN] * units, [OUTPUTS] * units)
        self.size = int(self.layout.w_at[1])
        self.parameters = units * self.size
        self.moved = (16 if momentum else 8) * self.parameters  # bytes: each number is read and written once
        # a weight takes 2 B operations forward and 2 B for its gradient, and one of the second layer 2 B more for the error
        self.operations = (4 * self.parameters + 2 * units * OUTPUTS * HIDDEN) * batch
        rng = np.random.default_rng(SEED)
        self.x = rng.random((batch, units * INPUTS), dtype=np.float32)
        self.target = rng.random((batch, units * OUTPUTS), dtype=np.float32)
        self.sample = np.linspace(0, units - 1, SAMPLE).astype(int)
        first = self.sampled(self.weights()).astype(np.float64)
        self.expected = np.stack([self._step(u, weights) for u, weights in zip(self.sample, first, strict=True)])

    def weights(self) -> np.ndarray:
        """The same first weights for every rival."""
        weights = np.random.default_rng(SEED + 1).standard_normal(self.parameters, dtype=np.float32)
        weights *= np.float32(0.1)
        return weights

    def sampled(self, weights: np.ndarray) -> np.ndarray:
        """The weights of the units of the sample, one row a unit."""
        return weights.reshape(self.units, self.size)[self.sample]

    def check(self, sampled: np.ndarray) -> None:
        """Raise unless a step from the first weights has led to these, in the units of the sample."""
        # a change is a float32 sum of batch products, and is rounded once more when added to its weight
        np.testing.assert_allclose(sampled, self.expected, rtol=1e-6, atol=1e-6 * np.sqrt(self.batch))

    def _step(self, unit: int, weights: np.ndarray) -> np.ndarray:
        """The oracle: one step of one unit in float64; the velocity begins at 0, so momentum does not show yet."""
        cuts = np.cumsum([HIDDEN * INPUTS, HIDDEN, OUTPUTS * HIDDEN])
        first, first_bias, second, second_bias = np.split(weights, cuts)
        second = second.reshape(OUTPUTS, HIDDEN)
        x = self.x[:, unit * INPUTS : (unit + 1) * INPUTS].astype(np.float64)
        target = self.target[:, unit * OUTPUTS : (unit + 1) * OUTPUTS]
        hidden = 1 / (1 + np.exp(-x @ first.reshape(HIDDEN, INPUTS).T - first_bias))
        y = 1 / (1 + np.exp(-hidden @ second.T - second_bias))
        delta = (y - target) * y * (1 - y)
        inner = delta @ second * hidden * (1 - hidden)
        grads = (inner.T @ x, inner.sum(0), delta.T @ hidden, delta.sum(0))
        return weights - RATE * np.concatenate([grad.ravel() for grad in grads])

    def work(self, who: str, step: Callable[[], None], check: Callable[[], None], threads: int, warm: int = 2) -> Work:
        """A rival at this problem."""
        params = {"units": self.units, "batch": self.batch, "momentum": self.momentum}
        work = ("units.step", who, params, self.parameters, "parameters/s", step, check)
        return Work(*work, moved=self.moved, threads=threads, warm=warm)


def _ours(problem: Problem, threads: int) -> Work:
    from cpu import units

    weights = problem.weights()
    velocity = np.zeros_like(weights) if problem.momentum else None
    y, hidden = np.empty_like(problem.target), np.empty((problem.batch, problem.units * HIDDEN), np.float32)
    written = (
        np.empty(problem.units, np.float32),
        y,
        hidden,
        weights,
        velocity,
        np.empty_like(y),
        np.empty_like(hidden),
    )
    read = (problem.layout, problem.x, problem.target, RATE, problem.momentum, "logistic")
    return problem.work(
        "ours", lambda: units.step(*written, *read), lambda: problem.check(problem.sampled(weights)), threads
    )


def _torch(problem: Problem, threads: int, compiled: bool) -> list[Work]:
    torch = peer("torch")
    if not torch:
        return []
    torch.set_num_threads(threads)
    works = [_torch_step(problem, threads, f"torch {torch.__version__} bmm", lambda step: step)]
    if compiled:
        whole = functools.partial(torch.compile, fullgraph=True, dynamic=False)
        works.append(_torch_step(problem, threads, f"torch {torch.__version__} compile", whole))
    return works


def _torch_step(problem: Problem, threads: int, who: str, wrap: Callable) -> Work:
    import torch

    units, momentum = problem.units, problem.momentum
    cuts = [HIDDEN * INPUTS, HIDDEN, OUTPUTS * HIDDEN, OUTPUTS]
    shapes = [(units, HIDDEN, INPUTS), (units, 1, HIDDEN), (units, OUTPUTS, HIDDEN), (units, 1, OUTPUTS)]
    rows = torch.from_numpy(problem.weights()).view(units, -1)
    parts = [part.reshape(shape).contiguous() for part, shape in zip(rows.split(cuts, 1), shapes, strict=True)]
    del rows
    speeds = [torch.zeros_like(part) for part in parts] if momentum else None
    x, target = (
        torch.from_numpy(np.ascontiguousarray(array.reshape(problem.batch, units, -1).swapaxes(0, 1)))
        for array in (problem.x, problem.target)
    )

    def descend(matrix, delta, x, keep):  # keep matrix - RATE delta^T x
        if problem.batch == 1 and keep == 1:  # an outer product: faster without BLAS, and the compiler can fuse it
            matrix.addcmul_(delta.mT, x, value=-RATE)
        else:  # mul_ before addcmul_ would be a second visit, and PyTorch 2.13 fails to compile it
            matrix.baddbmm_(delta.mT, x, beta=keep, alpha=-RATE)

    def step(x, target, first, first_bias, second, second_bias, speeds):
        hidden = torch.baddbmm(first_bias, x, first.mT).sigmoid_()
        y = torch.baddbmm(second_bias, hidden, second.mT).sigmoid_()
        delta = (y - target) * y * (1 - y)
        inner = torch.bmm(delta, second) * hidden * (1 - hidden)
        if speeds is None:
            descend(second, delta, hidden, 1)
            second_bias.sub_(delta.sum(1, keepdim=True), alpha=RATE)
            descend(first, inner, x, 1)
            first_bias.sub_(inner.sum(1, keepdim=True), alpha=RATE)
            return
        descend(speeds[2], delta, hidden, momentum)
        speeds[3].mul_(momentum).sub_(delta.sum(1, keepdim=True), alpha=RATE)
        descend(speeds[0], inner, x, momentum)
        speeds[1].mul_(momentum).sub_(inner.sum(1, keepdim=True), alpha=RATE)
        for part, speed in zip((first, first_bias, second, second_bias), speeds, strict=True):
            part.add_(speed)

    def check():
        sample = torch.from_numpy(problem.sample)
        found = np.concatenate([part[sample].reshape(len(sample), -1).numpy() for part in parts], axis=1)
        problem.check(found)

    chosen = wrap(step)
    return problem.work(who, torch.no_grad()(lambda: chosen(x, target, *parts, speeds)), check, threads)


def bandwidth(megabytes: int, threads: int) -> Work:
    """The machine itself takes a turn among the rivals: its bandwidth drifts, so a share is taken turn by turn."""
    from cpu.bandwidth import read_modify_write

    moved = 2.0 * megabytes * 2**20

    def seconds():
        return moved / read_modify_write(megabytes, repeat=1)[0]

    work = functools.partial(Work, threads=threads, warm=0, own_clock=True)
    return work("units.bandwidth", "machine", {}, moved, "bytes/s", seconds, lambda: None)


def gemm(batch: int, threads: int) -> Work:
    """What SciPy's BLAS reaches on small matrices that lie in the core's cache, one after another: the best of four shapes.

    Three are products of the step; one thread is timed, and counted as often as there are threads.
    """
    import numba

    from cpu.blas import gemm as product

    @numba.njit
    def again(out, a, b, times):
        for _ in range(times):
            product(out, a, b, 1, 0)

    shapes = ((OUTPUTS, HIDDEN, batch), (HIDDEN, INPUTS, batch), (batch, HIDDEN, OUTPUTS), (64, 64, 64))
    rng, operations = np.random.default_rng(SEED), 4e8
    given = [[rng.random(size, dtype=np.float32) for size in ((m, n), (m, k), (k, n))] for m, n, k in shapes]

    def seconds():
        taken = []
        for (m, n, k), arrays in zip(shapes, given, strict=True):
            times = int(operations / (2 * m * n * k))
            start = time.perf_counter()
            again(*arrays, times)
            taken.append((time.perf_counter() - start) * operations / (2 * m * n * k * times))
        return min(taken)

    work = functools.partial(Work, threads=threads, warm=1, own_clock=True)
    return work("units.gemm", "machine", {}, threads * operations, "FLOP/s", seconds, lambda: None)


def _bound(problem: Problem, ours: dict, bandwidth: float, peak: float) -> str:
    """One line: what the figure of ours is held against."""
    rate = problem.operations / ours["seconds"] / 1e9
    counted = 16 if problem.momentum else 8
    bound = "memory" if ours["bandwidth_share"] > 0.6 else "arithmetic"
    return (
        f"  {ours['value'] / 1e9:.2f} G parameters/s at {counted} bytes each = {ours['bandwidth_share']:.0%} of the "
        f"{bandwidth / 1e9:.1f} GB/s that read-modify-write reaches; {rate:.0f} GFLOP/s = {ours['gemm_share']:.0%} of the "
        f"{peak / 1e9:.0f} that a BLAS reaches on small matrices: bound by {bound}"
    )
