"""A trunk that is one MLP, of any depth: its layers, the optimiser of its weights, its stages."""

import itertools
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from .. import backend, check, optimisers
from ..contract import Layer, Move
from ..optimisers import SGD, Adam, Dense
from ..schedule.schedule import Buffers
from ..schedule.slot import Slot
from ..settings import number, option, positive
from . import Gradient, Stages

ACTIVATIONS = ("logistic", "rational", "tanh", "relu", "linear")
RATES = {"sgd": 0.1, "adam": 0.001, "adamw": 0.001}
NO_MOMENTUM = dict.fromkeys(("adam", "adamw"))
USUAL_RATES = {name: RATES[name] for name in NO_MOMENTUM}  # of the command line


class MLP(Stages):
    """An MLP of any depth, trained on the mean loss of a batch.

    sizes       inputs, the width of every hidden layer, outputs
    activation  of all layers, or (of hidden layers, of the last one): "logistic", "rational", "tanh", "relu", "linear"
    bias        True: layers have a bias
    dropout     dropout rate of hidden activations in training, while others are divided by 1 - dropout. The mask is a function
                of seed, tick, micro-batch, layer and position: the same on every device and after a resume

    A hidden layer is: linear -> activation -> dropout; the last one: linear -> activation.

    optimiser   "sgd", "adam", "adamw", or one with its numbers: SGD(0.05, momentum=0.9), Adam(0.001, betas=(0.9, 0.99)),
                AdamW(decay=0.1, clip=1.0); its rate is a step on the mean of the loss over a batch (default: 0.1, of Adam and
                AdamW 0.001)
    seed        draws weights and dropout: uniform weights of variance 2 / (fan in + fan out), or 2 / fan in under relu

    pickle and copy make a trunk with its own parameters, which is not yet placed.

    Memory: 8 bytes per weight (itself and its gradient) and 4 for each state of the optimiser: sgd 8, with momentum 12, adam
    16; an example in flight takes 8 bytes per activation. Raises ValueError for contradictory or invalid settings.
    """

    kind = "mlp"
    places: tuple[str, ...] = ("cpu", "cuda")
    _device: Any = None  # until it is placed

    def __init__(
        self,
        sizes: Sequence[int],
        activation: str | tuple[str, str] = "tanh",
        *,
        bias: bool = True,
        dropout: float = 0.0,
        optimiser: str | Dense = "sgd",
        seed: int = 0,
    ):
        hidden, last = _pair(activation)
        self.layers = _layers(sizes, hidden, last, bias=bool(bias), dropout=dropout)
        self.inputs, self.outputs = self.layers[0].inputs, self.layers[-1].outputs
        self.activation, self.last, self.bias = hidden, last, bias
        self.dropout, self.seed = float(dropout), check.whole("seed", seed, 0)
        self.weights = _initial(self.layers, np.random.default_rng([self.seed, 2]))
        settings: Any = optimisers.taken(optimiser, optimisers.TRUNK)
        self.optimiser = Optimiser(settings, self.weights.size)

    def place(self, device: Any, kernels: Any) -> None:
        self._device, self._kernels = device, kernels.mlp
        self._weights = device.from_host(self.weights)
        self.gradient = Gradient(device, self.weights.size, kernels.optimiser.merge)
        self._work = self._kernels.workspace(max(layer.outputs for layer in self.layers), np.float32)
        self.optimiser.place(device, kernels)

    def buffers(self) -> Buffers:
        """Returns the outputs of layers and their gradients."""
        kept = {self._out(place): layer.outputs for place, layer in enumerate(self.layers)}
        grads = {self._grad(place): layer.outputs for place, layer in enumerate(self.layers)}
        return Buffers(kept | grads)

    def forward(self, slot: Slot) -> None:
        x = slot.x_dev
        for layer, out, key in zip(self.layers, self._outs(slot), self._keys(slot), strict=True):
            self._kernels.forward(out, layer, self._weights, x, key)
            x = out

    def fall(self, slot: Slot) -> None:
        outs, keys, weight_grad = self._outs(slot), self._keys(slot), self.gradient.next()
        for place in reversed(range(len(self.layers))):
            x = outs[place - 1] if place else slot.x_dev
            x_grad, out_grad = (getattr(slot, f"{self._grad(number)}_dev") for number in (place - 1, place))
            written = (x_grad, weight_grad, out_grad, self._work)
            self._kernels.backward(*written, self.layers[place], self._weights, outs[place], x, keys[place])

    def move(self, slot: Slot) -> None:
        self.gradient.close()
        self.optimiser.move(self._weights, self.gradient.part(), slot.examples, slot.scale)

    def parameters(self) -> dict[str, np.ndarray]:
        """Returns weights and state of the optimiser, by name: arrays of the host."""
        return {"weights": self.weights} | self.optimiser.parameters()

    def describe(self) -> dict[str, Any]:
        sizes = [self.inputs, *(layer.outputs for layer in self.layers)]
        form: dict[str, Any] = {"kind": self.kind, "sizes": sizes, "activation": self.activation, "last": self.last}
        form |= {"bias": self.bias, "dropout": self.dropout}
        return form | self.optimiser.describe() | {"seed": self.seed}

    def fetch(self) -> None:
        backend.fetch_arrays(self._device, self._pairs())

    def send(self) -> None:
        backend.send_arrays(self._device, self._pairs())

    def __reduce__(self) -> tuple[Any, ...]:
        if self._device:
            self.fetch()
        return _restored, (self.describe(), self.parameters())

    def _outs(self, slot: Slot) -> list[Any]:
        return [getattr(slot, f"{self._out(place)}_dev") for place in range(len(self.layers))]

    def _keys(self, slot: Slot) -> Sequence[int | None]:
        """Returns the random keys of the layers' dropout masks; None for all without dropout."""
        if not (self.dropout and slot.learns):
            return [None] * len(self.layers)
        drawn = np.random.SeedSequence((self.seed, slot.tick, slot.micro))
        return [int(key) >> 1 for key in drawn.generate_state(len(self.layers), np.uint64)]

    def _out(self, place: int) -> str:
        """Returns the name of a layer's output; that of the last one is the hidden vectors."""
        return "hidden" if place == len(self.layers) - 1 else f"inner{place}"

    def _grad(self, place: int) -> str:
        """Returns the name of the gradient of a layer's output; -1: of the first one's input."""
        return {-1: "x_grad", len(self.layers) - 1: "grad"}.get(place, f"inner{place}_grad")

    def _pairs(self) -> list[tuple[np.ndarray, Any]]:
        return [(self.weights, self._weights), *self.optimiser.pairs()]


def _pair(activation: Any) -> tuple[Any, Any]:
    """Returns the activations of hidden layers and of the last one; None: the same."""
    if isinstance(activation, str | None):
        return activation, None
    if not isinstance(activation, tuple | list) or len(activation) != 2:
        raise ValueError(f"activation: found {activation!r}, expected one, or (of hidden layers, of the last one)")
    return activation[0], activation[1]


def _layers(sizes: Any, activation: str, last: str | None, *, bias: bool, dropout: float) -> list[Layer]:
    """Returns a layer for each pair of neighbouring sizes, only hidden ones with dropout; ValueError as MLP."""
    if not isinstance(sizes, Sequence | np.ndarray) or isinstance(sizes, str) or len(sizes) < 2:
        raise ValueError(f"sizes: found {sizes!r}, expected the inputs, the width of every hidden layer, the outputs")
    sizes = [check.whole(f"sizes[{place}]", size, 1) for place, size in enumerate(sizes)]
    check.choice("activation", activation, ACTIVATIONS)
    last = activation if last is None else check.choice("last", last, ACTIVATIONS)
    if check.number("dropout", dropout, 0) >= 1:
        raise ValueError(f"dropout: found {dropout}, expected a number below 1")
    if dropout and len(sizes) == 2:
        raise ValueError(f"dropout: found {dropout}, but sizes {sizes} have no hidden layer; leave it out")
    made: list[Layer] = []
    at = 0
    for place, (n, o) in enumerate(itertools.pairwise(sizes)):
        hidden = place < len(sizes) - 2
        made.append(Layer(n, o, at, bias, activation if hidden else last, float(dropout) if hidden else 0.0))
        at += o * (n + bias)
    return made


def _initial(made: Sequence[Layer], rng: np.random.Generator) -> np.ndarray:
    """Returns uniform weights, and biases of 0. The variance is 2 / (fan in + fan out) (Glorot and Bengio 2010), or 2 / fan in
    under relu, which halves it (He et al. 2015, arXiv:1502.01852).
    """
    weights = np.zeros(sum(layer.outputs * (layer.inputs + layer.bias) for layer in made), np.float32)
    for layer in made:
        fans = layer.inputs + (0 if layer.activation == "relu" else layer.outputs)
        bound, matrix = np.sqrt(6 / fans), layer.inputs * layer.outputs
        weights[layer.at : layer.at + matrix] = rng.uniform(-bound, bound, matrix)
    return weights


class Optimiser:
    """The optimiser of a flat array of `size` weights, set by `settings`, by the formulas of PyTorch.

    Its state has this many numbers per weight: SGD 0, with momentum 1, Adam and AdamW 2.
    """

    def __init__(self, settings: Dense, size: int):
        self.settings, self.name, self.size = settings, settings.name, size
        self.rate = RATES[self.name] if settings.rate is None else settings.rate
        self.decay, self.clip = settings.decay, settings.clip
        self.momentum = settings.momentum if isinstance(settings, SGD) else 0.0
        states = ["mean", "squares"] if self._betas else ["velocity"] if self.momentum else []
        self.state = {name: np.zeros(size, np.float32) for name in states}
        self.updates = np.zeros(1, np.int64)  # for Adam's bias correction

    def place(self, device: Any, kernels: Any) -> None:
        self._kernels = kernels.optimiser
        self._state = {name: device.from_host(array) for name, array in self.state.items()}
        self._work = self._kernels.workspace(self.size) if self.clip is not None else None

    def move(self, weights: Any, grad: Any, examples: float, scale: float) -> None:
        """Updates weights of the device with the mean gradient, and clears its sum `grad`."""
        self.updates += 1
        if self.clip is not None:
            self._kernels.clip(self._work, grad, 1 / examples, self.clip)
        move = Move(self.rate * scale, 1 / examples, self.decay, self._work)
        if self.name == "sgd":
            self._kernels.sgd(weights, self._state.get("velocity"), grad, move, self.momentum)
        else:
            state, decoupled = (self._state["mean"], self._state["squares"]), self.name == "adamw"
            self._kernels.adam(weights, *state, grad, move, self._betas, int(self.updates[0]), decoupled)

    def parameters(self) -> dict[str, np.ndarray]:
        """Returns the state by name: arrays of the host."""
        return self.state | ({"updates": self.updates} if self._betas else {})

    def pairs(self) -> list[tuple[np.ndarray, Any]]:
        """Returns each array of the state with that of the device."""
        return [(array, self._state[name]) for name, array in self.state.items()]

    def describe(self) -> dict[str, Any]:
        """Returns the arguments of `optimisers.named`; `optimiser` is its name."""
        momentum = self.momentum if isinstance(self.settings, SGD) else None
        betas = list(self._betas) if self._betas else None
        numbers = {"rate": self.rate, "momentum": momentum, "betas": betas, "decay": self.decay, "clip": self.clip}
        return {"optimiser": self.name} | numbers

    @property
    def _betas(self) -> Any:
        return self.settings.betas if isinstance(self.settings, Adam) else None


def widths(text: str) -> int | list[int]:
    """Parses an integer of at least 1, or several separated by commas."""
    sizes = [positive(part) for part in text.split(",")]
    return sizes[0] if len(sizes) == 1 else sizes


@dataclass(frozen=True)
class Options:
    """The command-line options of an MLP."""

    hidden: int | list[int] = option(256, "hidden widths of the trunk", type=widths, metavar="WIDTH[,WIDTH,...]")
    activation: str = option("tanh", "activation function of the trunk", choices=ACTIVATIONS)
    dropout: float = option(0.0, "dropout rate of the trunk's hidden layers", group="training", type=number)
    trunk_optimiser: str = option("sgd", "optimiser of the trunk", group="training", choices=optimisers.TRUNK)
    trunk_rate: float = option(
        0.2, "learning rate of the trunk", group="training", type=number, by=("trunk_optimiser", USUAL_RATES)
    )
    momentum: float | None = option(
        0.9, "momentum of the trunk", group="training", type=number, by=("trunk_optimiser", NO_MOMENTUM)
    )
    trunk_decay: float | None = option(
        None, "weight decay of the trunk (default: 0; adamw: 0.01)", group="training", type=number
    )


def make(inputs: int, outputs: int, options: Mapping[str, Any], *, seed: int) -> MLP:
    """Returns the trunk from command-line options, see hybrid/trunk/__init__.py."""
    hidden = options["hidden"]
    sizes = [inputs, *(hidden if isinstance(hidden, list) else [hidden]), outputs]
    numbers = {"rate": options["trunk_rate"], "momentum": options["momentum"], "decay": options["trunk_decay"]}
    optimiser: Any = optimisers.named(options["trunk_optimiser"], optimisers.TRUNK, **numbers)
    return MLP(sizes, options["activation"], dropout=options["dropout"], optimiser=optimiser, seed=seed)


def rebuild(*, sizes: list[int], activation: str, last: str, optimiser: str, **facts: Any) -> MLP:
    """Returns the trunk from describe()."""
    numbers = {name: facts.pop(name) for name in ("rate", "momentum", "betas", "decay", "clip")}
    moves: Any = optimisers.named(optimiser, optimisers.TRUNK, **numbers)
    activations: Any = activation, last
    return MLP(sizes, activations, optimiser=moves, **facts)


def least(*, sizes: list[int], **facts: Any) -> int:
    """Returns the minimum number of values in a checkpoint."""
    return sum(math.prod(pair) for pair in itertools.pairwise(sizes))


def _restored(facts: dict[str, Any], parameters: dict[str, np.ndarray]) -> MLP:
    made = rebuild(**{name: value for name, value in facts.items() if name != "kind"})
    for name, array in made.parameters().items():
        array[:] = parameters[name]
    return made
