"""The fused online step of collections of small MLPs, 10 M to 1 G parameters, against PyTorch.

Units are 150-49-150, as in Piekniewski's video model. PyTorch's step is bmm with a manual backward, also compiled.
"""

import functools
import gc
import itertools
import statistics
from collections.abc import Callable
from typing import Any

import numpy as np

from bench.harness.measure import Work, append, measure, near, peer, show
from bench.oracles import units as oracle
from hybrid.machine import memory
from hybrid.units import UnitLayout, unit_layout

SIZES = INPUTS, HIDDEN, OUTPUTS = 150, 49, 150  # unit sizes of Piekniewski's video model
RATE, ACTIVATION, SEED = 0.01, "logistic", 0
SAMPLE = 13  # units checked against the oracle, evenly spread, besides the largest and the smallest
DRAWN = 15_000_000  # number of drawn initial weights; these repeat, since drawing takes time
UNITS = (671, 6712, 14_161, 67_119)  # 10 M, 100 M, 210,984,739 (Piekniewski's), 1 G parameters
BATCHES, MOMENTUM = (1, 8, 16), 0.9
OFF = -1e4  # a bias at which a hidden unit is exactly 0


def run(arguments) -> None:
    """Measures every batch and size; momentum and 1 G parameters with one example a step alone."""
    import numba

    numba.set_num_threads(arguments.threads)
    batches, sizes = ((1, 8), (12 * 12,)) if arguments.quick else (BATCHES, UNITS)
    machine = bandwidth(64 if arguments.quick else 1024, arguments.threads)
    for batch in batches:
        cases = itertools.product(sizes, (0.0, MOMENTUM)) if batch == 1 else ((units, 0.0) for units in sizes[:3])
        for units, momentum in cases:
            layout = equal(units)
            # Weights and velocities of two rivals, and a copy while those of one are padded; the rest is for all else
            if 4 * (5 if momentum else 3) * int(layout.w_at[-1]) > 0.75 * memory():
                print(f"left out: {units:,} units, momentum {momentum}: memory does not hold them", flush=True)
                continue
            problem = Problem(layout, batch, momentum)
            works = [ours(problem, arguments.threads), *_rivals(problem, arguments.threads)]
            _, *records = measure([machine, *works], arguments.repeat)
            for work, record in zip(works, records, strict=True):
                record["bandwidth_share"] = problem.share(work, machine)
                record["parameters"] = problem.parameters
            show(records)
            append(arguments.json, records)
            del problem, works
            gc.collect()  # before the next weights are allocated


def _rivals(problem: "Problem", threads: int) -> list[Work]:
    """Returns the steps of PyTorch if it is installed: torch.compile, slow to compile, at one size."""
    kinds = ("bmm", "compile") if problem.units == UNITS[2] else ("bmm",)
    return [torch_rival(problem, threads, kind) for kind in kinds] if peer("torch") else []


def equal(units: int, sizes: tuple[int, int, int] = SIZES) -> UnitLayout:
    """Returns a layout of units of one size."""
    return unit_layout(*([size] * units for size in sizes))


class Problem:
    """The rivals' shared units, inputs, targets and initial weights, and a sample's step in float64.

    name  as in the record's `work`
    """

    def __init__(self, layout: UnitLayout, batch: int, momentum: float, name: str = "units.step"):
        self.layout, self.batch, self.momentum, self.name = layout, batch, momentum, name
        self.units, self.parameters = len(layout.inputs), int(layout.w_at[-1])
        self.counted = 16 if momentum else 8  # bytes a parameter: each number is read and written once
        self.moved = float(self.counted * self.parameters)
        rng = np.random.default_rng(SEED)
        self.x = rng.random((batch, int(layout.x_at[-1])), dtype=np.float32)
        self.target = rng.random((batch, int(layout.y_at[-1])), dtype=np.float32)
        sizes = np.diff(layout.w_at)
        spread = np.linspace(0, self.units - 1, SAMPLE).astype(int)
        self.sample = np.unique([*spread, sizes.argmax(), sizes.argmin()])
        self.first = self.sampled(self.weights())
        self.loss, self.expected, self.speed = self._step()

    def weights(self) -> np.ndarray:
        """Returns the same initial weights for every rival, in a new array."""
        drawn = np.random.default_rng(SEED + 1).standard_normal(min(self.parameters, DRAWN), dtype=np.float32)
        drawn *= np.float32(0.1)
        return np.resize(drawn, self.parameters)

    def velocity(self) -> np.ndarray | None:
        """Returns the initial velocity; None without momentum."""
        return self.weights() * np.float32(0.01) if self.momentum else None

    def spans(self) -> list[tuple[int, int]]:
        """Returns the start and end of the weights of each unit of the sample."""
        return [(int(self.layout.w_at[u]), int(self.layout.w_at[u + 1])) for u in self.sample]

    def sampled(self, flat: np.ndarray) -> np.ndarray:
        """Returns the weights of the units of the sample, concatenated."""
        return np.concatenate([flat[begin:end] for begin, end in self.spans()])

    def check(self, weights: np.ndarray, velocity: np.ndarray | None = None) -> None:
        """Raises unless one step from the initial weights gives these, in the units of the sample."""
        near("weights", weights, self.expected, self.first)
        if velocity is not None:
            near("velocity", velocity, self.speed, 0.01 * self.first)

    def _step(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        some = unit_layout(*(size[self.sample] for size in self.layout[:3]))
        x, target = (
            np.concatenate([signals[:, at[u] : at[u + 1]] for u in self.sample], axis=1)
            for signals, at in ((self.x, self.layout.x_at), (self.target, self.layout.y_at))
        )
        hidden, y = oracle.forward(some, self.first, x, ACTIVATION)
        velocity = self.first * np.float32(0.01) if self.momentum else None
        return oracle.step(some, self.first, velocity, hidden, y, x, target, RATE, self.momentum, ACTIVATION)

    def share(self, work: Work, machine: Work) -> float:
        """Returns the share of the bandwidth, turn by turn, since it drifts."""
        turns = zip(work.samples, machine.samples, strict=True)
        return statistics.median(self.moved / own * other / machine.amount for own, other in turns)

    def work(self, who: str, step: Callable[[], Any], check: Callable[[], None], threads: int) -> Work:
        """Returns a rival at this problem."""
        params = {"units": self.units, "batch": self.batch, "momentum": self.momentum}
        work = (self.name, who, params, self.parameters, "parameters/s", step, check)
        return Work(*work, moved=self.moved, threads=threads, warm=2)


def ours(problem: Problem, threads: int) -> Work:
    """Returns our fused step."""
    from cpu import units

    weights, velocity = problem.weights(), problem.velocity()
    y, y_grad = (np.empty(problem.target.shape, np.float32) for _ in range(2))
    hidden, hidden_grad = (np.empty((problem.batch, int(problem.layout.h_at[-1])), np.float32) for _ in range(2))
    written = (np.empty(problem.units, np.float32), y, hidden, weights, velocity, y_grad, hidden_grad)
    read = (problem.layout, problem.x, problem.target, RATE, problem.momentum, ACTIVATION)

    def check():
        problem.check(problem.sampled(weights), None if velocity is None else problem.sampled(velocity))

    return problem.work("ours", lambda: units.step(*written, *read), check, threads)


# The rivals: batched products over all units, from padded arrays


def padded(layout: UnitLayout, flat: np.ndarray, off: float = OFF) -> list[np.ndarray]:
    """Converts flat weights to (U, H, N), (U, 1, H), (U, O, H), (U, 1, O), padded to the largest unit.

    Padding is 0, but `off` in a bias of the first layer, which switches a padded hidden unit off: padding learns nothing.
    """
    many, (n, h, o) = len(layout.inputs), (int(size.max()) for size in layout[:3])
    shapes = ((many, h, n), (many, 1, h), (many, o, h), (many, 1, o))
    if flat.size == many * (h * (n + 1) + o * (h + 1)):  # all units have the same size
        cuts = np.split(flat.reshape(many, -1), np.cumsum([h * n, h, o * h]), axis=1)
        return [np.ascontiguousarray(cut).reshape(shape) for cut, shape in zip(cuts, shapes, strict=True)]
    fills = (0.0, off, 0.0, 0.0)
    first, first_bias, second, second_bias = map(functools.partial(np.full, dtype=np.float32), shapes, fills)
    for u in range(many):
        n, h, o = (int(size[u]) for size in layout[:3])
        parts = np.split(flat[layout.w_at[u] : layout.w_at[u + 1]], np.cumsum([h * n, h, o * h]))
        first[u, :h, :n], first_bias[u, 0, :h] = parts[0].reshape(h, n), parts[1]
        second[u, :o, :h], second_bias[u, 0, :o] = parts[2].reshape(o, h), parts[3]
    return [first, first_bias, second, second_bias]


def by_unit(signals: np.ndarray, at: np.ndarray, fill: float = 0.0) -> np.ndarray:
    """Converts signals (B, X) to (U, B, most), padded."""
    found = np.full((at.size - 1, len(signals), int(np.diff(at).max())), fill, np.float32)
    for u, (begin, end) in enumerate(itertools.pairwise(at)):
        found[u, :, : end - begin] = signals[:, begin:end]
    return found


def unpadded(problem: Problem, parts: list[np.ndarray]) -> np.ndarray:
    """Returns the flat weights of the units of the sample, from their rows of the four arrays."""
    found = []
    for i, u in enumerate(problem.sample):
        n, h, o = (int(size[u]) for size in problem.layout[:3])
        cuts = (parts[0][i, :h, :n], parts[1][i, 0, :h], parts[2][i, :o, :h], parts[3][i, 0, :o])
        found += [np.ravel(cut) for cut in cuts]
    return np.concatenate(found)


class Torch:
    """The cheapest known step in PyTorch on padded arrays; `step()` takes it.

    kind     "bmm": manual backward, in-place updates; "compile": the same, compiled; "autograd": autograd and torch.optim.SGD,
             fused
    place    "cpu" or "cuda"
    padding  numbers that it computes with, relative to the parameters
    """

    def __init__(self, problem: Problem, kind: str, place: str = "cpu"):
        import torch

        self.problem, layout = problem, problem.layout
        put = lambda array: torch.from_numpy(array).to(place)  # noqa: E731
        self.parts = [put(part) for part in padded(layout, problem.weights())]
        velocity = problem.velocity()
        self.speeds = None if velocity is None else [put(part) for part in padded(layout, velocity, 0.0)]
        self.x = put(by_unit(problem.x, layout.x_at))
        self.target = put(by_unit(problem.target, layout.y_at, 0.5))  # output of a unit without weights
        self.padding = sum(part.numel() for part in self.parts) / problem.parameters
        self.scale = 1.0  # our velocity relative to PyTorch's
        if kind == "autograd":
            self.step = self._by_autograd(torch)
        else:
            wrap = functools.partial(torch.compile, fullgraph=True, dynamic=False) if kind == "compile" else None
            self.step = self._by_hand(torch, wrap)

    def check(self) -> None:
        """Raises unless one step has given the expected weights."""
        speeds = None if self.speeds is None else self.scale * self._sampled(self.speeds)
        self.problem.check(self._sampled(self.parts), speeds)

    def _sampled(self, parts: list[Any]) -> np.ndarray:
        return unpadded(self.problem, [part.detach()[self.problem.sample.tolist()].cpu().numpy() for part in parts])

    def _by_hand(self, torch: Any, wrap: Callable | None) -> Callable[[], Any]:
        batch, momentum = self.problem.batch, self.problem.momentum

        def descend(matrix, bias, delta, x, keep):  # keep matrix - RATE delta^T x
            if batch == 1 and keep == 1:  # an outer product: faster without BLAS, and the compiler can fuse it
                matrix.addcmul_(delta.mT, x, value=-RATE)
            else:  # mul_ before addcmul_ would be a second visit, and PyTorch 2.13 fails to compile it
                matrix.baddbmm_(delta.mT, x, beta=keep, alpha=-RATE)
            if keep != 1:
                bias.mul_(keep)
            bias.sub_(delta.sum(1, keepdim=True), alpha=RATE)

        def step(x: Any, target: Any, parts: Any, speeds: Any) -> None:
            first, first_bias, second, second_bias = parts
            hidden = torch.baddbmm(first_bias, x, first.mT).sigmoid_()
            y = torch.baddbmm(second_bias, hidden, second.mT).sigmoid_()
            delta = (y - target) * y * (1 - y)
            inner = torch.bmm(delta, second) * hidden * (1 - hidden)
            moved, keep = (parts, 1) if speeds is None else (speeds, momentum)
            descend(moved[2], moved[3], delta, hidden, keep)
            descend(moved[0], moved[1], inner, x, keep)
            if speeds is not None:
                for part, speed in zip(parts, speeds, strict=True):
                    part.add_(speed)

        chosen = wrap(step) if wrap else step
        return torch.no_grad()(lambda: chosen(self.x, self.target, self.parts, self.speeds))

    def _by_autograd(self, torch: Any) -> Callable[[], Any]:
        first, first_bias, second, second_bias = (part.requires_grad_() for part in self.parts)
        optimiser = torch.optim.SGD(self.parts, lr=RATE, momentum=self.problem.momentum, fused=True)
        for part, speed in zip(self.parts, self.speeds or (), strict=False):
            # PyTorch's buffer is the sum of gradients, ours the change of the weights
            optimiser.state[part]["momentum_buffer"] = speed.div_(-RATE)
        self.scale = -RATE

        def step() -> None:
            optimiser.zero_grad()
            hidden = torch.baddbmm(first_bias, self.x, first.mT).sigmoid()
            y = torch.baddbmm(second_bias, hidden, second.mT).sigmoid()
            ((y - self.target).square().sum() / 2).backward()
            optimiser.step()

        return step


def torch_rival(problem: Problem, threads: int, kind: str) -> Work:
    """Returns the rival of `Torch`."""
    torch = peer("torch")
    torch.set_num_threads(threads)
    made = Torch(problem, kind)
    return problem.work(f"torch {torch.__version__} {kind}", made.step, made.check, threads)


# The ceiling of a machine: memory bandwidth


def bandwidth(megabytes: int, threads: int) -> Work:
    """Returns the bandwidth as a rival: it drifts, so its share is computed turn by turn."""
    from cpu.runtime.memory import read_modify_write

    moved = 2.0 * megabytes * 2**20

    def seconds():
        return moved / read_modify_write(megabytes, repeat=1)[0]

    work = functools.partial(Work, threads=threads, warm=0, own_clock=True)
    return work("units.bandwidth", "machine", {}, moved, "bytes/s", seconds, lambda: None)
