"""A training step of an MLP on squared errors: ours, PyTorch's, and what the first one makes of the weights in float64."""

import time
import types
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

import cpu  # noqa: F401  # says how threads wait, before PyTorch reads it
from bench.measure import Work

RATE, MOMENTUM = 0.001, 0.9
BESIDE = {"adam": 1e-8, "adagrad": 1e-10}  # the root
SECONDS, SPEED = 0.1, 1e11  # of a turn, for which a step is repeated; about so many operations a second
SLOPES: dict[str, Callable[[Any], Any]] = {"relu": lambda a: a > 0, "tanh": lambda a: 1 - a * a, "linear": np.ones_like}
VALUES: dict[str, Callable[[Any], Any]] = {"relu": lambda s: np.maximum(s, 0), "tanh": np.tanh, "linear": lambda s: s}


class Net(NamedTuple):
    """An MLP: its sizes, the activation of hidden layers and of the last one, and how it moves."""

    sizes: tuple[int, ...]
    activation: str
    last: str
    optimiser: str  # "sgd" has momentum


def first(optimiser: str, weights: np.ndarray, grad: np.ndarray) -> np.ndarray:
    """The weights after a first update, in float64: of Adam and Adagrad the root of the squares is the gradient's own size."""
    grad = grad.astype(float)
    return weights - RATE * (grad if optimiser == "sgd" else grad / (abs(grad) + BESIDE[optimiser]))


def torch_optimiser(optimiser: str, parameters: Any, how: str, rate: float = RATE) -> Any:
    """PyTorch's; how: "fused" or "foreach"."""
    import torch

    kind = {"adam": torch.optim.Adam, "adagrad": torch.optim.Adagrad, "sgd": torch.optim.SGD}[optimiser]
    return kind(parameters, lr=rate, **{how: True}, **({"momentum": MOMENTUM} if optimiser == "sgd" else {}))


class Step:
    """A net, a batch and its targets: every rival learns from them again and again, from the same first weights.

    x_grad  whether the gradient of the inputs is wanted too, as it is where rows are below the trunk
    """

    def __init__(self, net: Net, batch: int, x_grad: bool = True):
        self.net, self.batch, self.x_grad = net, batch, x_grad
        rng = np.random.default_rng(0)
        self.x = rng.random((batch, net.sizes[0]), np.float32)
        self.target = rng.standard_normal((batch, net.sizes[-1]), np.float32)
        self.trunk = self.made()
        self.out, grad = self._differentiated()
        sample = np.linspace(0, grad.size - 1, min(grad.size, 100_000)).astype(int)
        # a small gradient may have another sign in float32, and Adam and Adagrad move each weight as far as a large one does
        self.sample = sample[abs(grad[sample]) > np.quantile(abs(grad[sample]), 0.7)]
        self.expected = first(net.optimiser, self.trunk.weights[self.sample], grad[self.sample])

    def made(self) -> Any:
        """An MLP with the first weights."""
        from hybrid import MLP

        sizes, activation, last, optimiser = self.net
        momentum = MOMENTUM if optimiser == "sgd" else None
        return MLP(sizes, activation, last, optimiser=optimiser, rate=RATE, momentum=momentum)

    @property
    def operations(self) -> int:
        """Floating-point operations of the products."""
        layers = self.trunk.layers
        spared = 0 if self.x_grad else layers[0].inputs * layers[0].outputs
        return 2 * self.batch * (3 * sum(layer.inputs * layer.outputs for layer in layers) - spared)

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
        """A rival; out, weights: what it has after its first step, which is checked. A turn is many steps after that."""
        steps = 0

        def turn() -> float:
            nonlocal steps
            start = time.perf_counter()
            for _ in range(steps or 1):
                step()
            took = (time.perf_counter() - start) / (steps or 1)
            steps = max(1, round(SECONDS * SPEED / self.operations))
            return took

        def check() -> None:
            atol = RATE * (1e-4 * abs(self.expected).max() if self.net.optimiser == "sgd" else 0.1)
            np.testing.assert_allclose(weights()[self.sample], self.expected, rtol=0, atol=atol)
            np.testing.assert_allclose(out(), self.out, rtol=0, atol=1e-4 * abs(self.out).max())

        sizes, activation, _, optimiser = self.net
        params: dict[str, Any] = {"sizes": "-".join(map(str, sizes)), "activation": activation, "optimiser": optimiser}
        params |= {"batch": self.batch, "input gradient": self.x_grad}
        return Work("trunk.step", who, params, self.operations, "FLOP/s", turn, check, threads=threads, own_clock=True)

    def _differentiated(self) -> tuple[np.ndarray, np.ndarray]:
        """What the net gives, and the gradient of its weights by the mean loss."""
        _, activation, last, _ = self.net
        parts = [(matrix.astype(float), bias.astype(float)) for matrix, bias in self.parts(self.trunk.weights)]
        kinds = [activation] * (len(parts) - 1) + [last]
        values = [self.x.astype(float)]
        for (matrix, bias), kind in zip(parts, kinds, strict=True):
            values.append(VALUES[kind](values[-1] @ matrix.T + bias))
        delta, grads = (values[-1] - self.target) / self.batch, []
        for place in reversed(range(len(parts))):
            delta = delta * SLOPES[kinds[place]](values[place + 1])
            grads += [delta.sum(0), (delta.T @ values[place]).ravel()]
            delta = delta @ parts[place][0]
        return values[-1], np.concatenate(grads[::-1])


def ours(step: Step, threads: int) -> Work:
    """An MLP."""
    from hybrid import backend

    place, trunk = backend.choose("cpu"), step.made()
    trunk.place(place.device, place)
    widths = trunk.buffers().widths | {"x_grad": trunk.inputs}
    slot = types.SimpleNamespace(learns=True, tick=0, micro=0, scale=1.0, examples=step.batch, x_dev=step.x)
    for name, width in widths.items():
        setattr(slot, f"{name}_dev", np.empty((step.batch, width), np.float32))
    if not step.x_grad:
        slot.x_grad_dev = None

    def turn() -> None:
        trunk.forward(slot)
        np.subtract(slot.hidden_dev, step.target, out=slot.grad_dev)
        trunk.backward(slot)
        trunk.move(slot)

    return step.work("ours", turn, lambda: slot.hidden_dev, lambda: trunk.weights, threads)


def torchs(step: Step, how: str, threads: int) -> Work:
    """PyTorch's; how: "fused", "foreach", or "compile": fused, and the module is compiled."""
    import torch

    torch.set_num_threads(threads)
    kinds = {"relu": torch.nn.ReLU, "tanh": torch.nn.Tanh, "linear": torch.nn.Identity}
    layers: list[Any] = []
    for place, (matrix, bias) in enumerate(step.parts(step.trunk.weights)):
        ends = place == len(step.trunk.layers) - 1
        layers += [
            torch.nn.Linear(matrix.shape[1], matrix.shape[0]),
            kinds[step.net.last if ends else step.net.activation](),
        ]
        with torch.no_grad():
            layers[-2].weight.copy_(torch.from_numpy(matrix))
            layers[-2].bias.copy_(torch.from_numpy(bias))
    module = torch.nn.Sequential(*layers)
    run = torch.compile(module, dynamic=False) if how == "compile" else module
    # The gradient stays a sum over the batch, as ours: the mean is in the rate, or Adam and Adagrad do not see it.
    rate = RATE / step.batch if step.net.optimiser == "sgd" else RATE
    moves = torch_optimiser(step.net.optimiser, module.parameters(), "foreach" if how == "foreach" else "fused", rate)
    x, target = torch.from_numpy(step.x.copy()).requires_grad_(step.x_grad), torch.from_numpy(step.target)
    grad = torch.empty_like(target)
    last: list[Any] = []

    def turn() -> None:
        moves.zero_grad()
        x.grad = None
        last[:] = [run(x)]
        torch.sub(last[0].detach(), target, out=grad)
        last[0].backward(grad)
        moves.step()

    def weights() -> np.ndarray:
        return np.concatenate([parameter.detach().numpy().reshape(-1) for parameter in module.parameters()])

    return step.work(f"torch {torch.__version__} {how}", turn, lambda: last[0].detach().numpy(), weights, threads)
