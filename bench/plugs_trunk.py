"""Adam and Adagrad of the dense part: one update alone, and whole steps of FCN-R, beside PyTorch's fused optimisers."""

import statistics
import time
import types
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

import cpu  # noqa: F401  # says how threads wait, before PyTorch reads it
from bench.measure import Work, append, measure, show
from bench.peers import peer

MILLIONS = (10, 100)
SIZES, BATCH = (784, 2048, 4096, 1024, 10), 256  # FCN-R of Shi et al. 2016
RATE = 0.001
BESIDE = {"adam": 1e-8, "adagrad": 1e-10}  # the root
MOVED = {"adam": 32, "adagrad": 24}  # bytes a parameter: weight, gradient and state are read and written


def run(arguments) -> None:
    """Updates of 10 and 100 million parameters, then whole steps; both optimisers."""
    import numba

    from cpu.bandwidth import read_modify_write

    numba.set_num_threads(arguments.threads)
    reached = statistics.median(read_modify_write(16 if arguments.quick else 1024))
    for optimiser in BESIDE:
        for size in (100_000,) if arguments.quick else [million * 10**6 for million in MILLIONS]:
            _report(list(_updates(optimiser, size, arguments.threads)), arguments, reached)
        sizes, batch = ((78, 20, 41, 10, 10), 32) if arguments.quick else (SIZES, BATCH)
        _report(list(_steps(Step(optimiser, sizes, batch), arguments.threads)), arguments, None)


def _report(works: list[Work], arguments, reached: float | None) -> None:
    records = measure(works, arguments.repeat, reached)
    show(records)
    append(arguments.json, records)


def first(optimiser: str, weights: np.ndarray, grad: np.ndarray) -> np.ndarray:
    """The weights after a first update, in float64: the root of the squares is then the gradient's own size."""
    grad = grad.astype(float)
    return weights - RATE * grad / (abs(grad) + BESIDE[optimiser])


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
    peer = _optimiser(optimiser, [parameter], how)

    def update():
        peer.step()
        if clears:
            peer.zero_grad(set_to_none=False)

    return parameter.detach().numpy(), parameter.grad.numpy(), update


def _optimiser(optimiser: str, parameters: Any, how: str) -> Any:
    import torch

    kind = {"adam": torch.optim.Adam, "adagrad": torch.optim.Adagrad}[optimiser]
    return kind(parameters, lr=RATE, **{how: True})


# A whole step


class Step:
    """An MLP of relu layers, the last one linear: its weights and a batch, and what one step makes of them in float64."""

    def __init__(self, optimiser: str, sizes: tuple[int, ...], batch: int):
        self.optimiser, self.sizes, self.batch = optimiser, sizes, batch
        rng = np.random.default_rng(0)
        self.x = rng.random((batch, sizes[0]), np.float32)
        self.out_grad = rng.standard_normal((batch, sizes[-1]), np.float32)
        self.trunk = self.made()
        self.out, grad = self._differentiated()
        sample = np.linspace(0, grad.size - 1, min(grad.size, 100_000)).astype(int)
        # a small gradient may have another sign in float32, and each moves its weight as far as a large one does
        self.sample = sample[abs(grad[sample]) > np.quantile(abs(grad[sample]), 0.7)]
        self.expected = first(optimiser, self.trunk.weights[self.sample], grad[self.sample])

    def made(self) -> Any:
        """An MLP with the first weights."""
        from hybrid import MLP

        return MLP(self.sizes, "relu", "linear", optimiser=self.optimiser, rate=RATE)

    def parts(self, numbers: np.ndarray) -> list[tuple[np.ndarray, np.ndarray]]:
        """Matrix and bias of every layer."""
        found = []
        for layer in self.trunk.layers:
            end = layer.at + layer.inputs * layer.outputs
            matrix = numbers[layer.at : end].reshape(layer.outputs, layer.inputs)
            found.append((matrix, numbers[end : end + layer.outputs]))
        return found

    def work(
        self, who: str, step: Callable[[], Any], out: Callable[[], np.ndarray], weights: Callable, threads: int
    ) -> Work:
        """A rival; out, weights: what it has after its first step."""

        def check():
            np.testing.assert_allclose(weights()[self.sample], self.expected, rtol=0, atol=RATE / 10)
            np.testing.assert_allclose(out(), self.out, rtol=0, atol=1e-4 * abs(self.out).max())

        params = {"sizes": "-".join(map(str, self.sizes)), "batch": self.batch, "optimiser": self.optimiser}
        return Work("trunk.step", who, params, self.batch, "examples/s", step, check, threads=threads)

    def _differentiated(self) -> tuple[np.ndarray, np.ndarray]:
        """What the net gives, and the gradient of its weights by the mean loss."""
        parts = [(matrix.astype(float), bias.astype(float)) for matrix, bias in self.parts(self.trunk.weights)]
        values = [self.x.astype(float)]
        for place, (matrix, bias) in enumerate(parts):
            s = values[-1] @ matrix.T + bias
            values.append(np.maximum(s, 0) if place < len(parts) - 1 else s)
        delta, grads = self.out_grad / self.batch, []
        for place in reversed(range(len(parts))):
            grads += [delta.sum(0), (delta.T @ values[place]).ravel()]
            delta = delta @ parts[place][0] * (values[place] > 0)
        return values[-1], np.concatenate(grads[::-1])


def _steps(step: Step, threads: int) -> Iterator[Work]:
    yield _our_step(step, threads)
    if torch := peer("torch"):
        torch.set_num_threads(threads)
        for how in ("fused", "foreach"):
            yield _torch_step(step, how, threads)


def _our_step(step: Step, threads: int) -> Work:
    from hybrid import backend

    trunk, place = step.made(), backend.choose("cpu")
    trunk.place(place.device, place)
    widths = trunk.buffers().widths | {"x_grad": trunk.inputs}
    slot = types.SimpleNamespace(learns=True, tick=0, micro=0, scale=1.0, examples=step.batch, x_dev=step.x)
    for name, width in widths.items():
        setattr(slot, f"{name}_dev", np.empty((step.batch, width), np.float32))
    slot.x_grad_dev = None  # as where pixels come in; PyTorch leaves it out too

    def turn():
        np.copyto(slot.grad_dev, step.out_grad)
        for stage in (trunk.forward, trunk.backward, trunk.move):
            stage(slot)

    return step.work("ours", turn, lambda: slot.hidden_dev, lambda: trunk.weights, threads)


def _torch_step(step: Step, how: str, threads: int) -> Work:
    import torch

    layers: list[Any] = []
    for matrix, bias in step.parts(step.trunk.weights):
        layers += [torch.nn.Linear(matrix.shape[1], matrix.shape[0]), torch.nn.ReLU()]
        with torch.no_grad():
            layers[-2].weight.copy_(torch.from_numpy(matrix))
            layers[-2].bias.copy_(torch.from_numpy(bias))
    model = torch.nn.Sequential(*layers[:-1])
    peer = _optimiser(step.optimiser, model.parameters(), how)
    x, out_grad = torch.from_numpy(step.x), torch.from_numpy(step.out_grad / step.batch)
    last: list[Any] = []

    def turn():
        peer.zero_grad()
        last[:] = [model(x)]
        last[0].backward(out_grad)
        peer.step()

    def weights():
        return torch.cat([parameter.detach().reshape(-1) for parameter in model.parameters()]).numpy()

    return step.work(f"torch {torch.__version__} {how}", turn, lambda: last[0].detach().numpy(), weights, threads)
