"""A trunk that is one MLP, of any depth."""

import itertools
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ... import check
from ...contract import Passed
from ...settings import number, option, positive
from ..part import Buffers
from ..slot import Slot
from ._dense import Dense
from ._gradient import Gradient
from ._layers import ACTIVATIONS, initial, layers, spans
from ._one_hidden import ACTIVATIONS as OF_UNITS
from ._one_hidden import Trunk as Trunk
from ._optimiser import RATES, WITHOUT_MOMENTUM, Optimiser

# Options of the command line, by MLP's argument, that a unit of hybrid/layout.py has not
SAID = {"dropout": "dropout", "optimiser": "trunk_optimiser", "decay": "trunk_decay", "clip": "trunk_clip"}
AS_UNIT = (("optimiser", "sgd"), ("dropout", 0.0))  # what it has


def widths(text: str) -> int | list[int]:
    """A whole number of at least 1, or several with commas between them."""
    found = [positive(part) for part in text.split(",")]
    return found[0] if len(found) == 1 else found


@dataclass(frozen=True)
class Options:
    """What the command line takes for an MLP."""

    hidden: int | list[int] = option(
        256, "widths of the trunk's hidden layers", type=widths, metavar="WIDTH[,WIDTH,...]"
    )
    activation: str = option("tanh", "of the trunk", choices=ACTIVATIONS)
    dropout: float = option(
        0.0, "share of the trunk's hidden activations that is set to 0", group="training", type=number
    )
    trunk_optimiser: str = option("sgd", "optimiser of the trunk", group="training", choices=tuple(RATES))
    trunk_rate: float = option(
        0.2,
        "learning rate of the trunk",
        group="training",
        type=number,
        by=("trunk_optimiser", {"nesterov": "sgd"} | {name: RATES[name] for name in WITHOUT_MOMENTUM}),
    )
    momentum: float | None = option(
        0.9,
        "momentum of the trunk",
        group="training",
        type=number,
        by=("trunk_optimiser", dict.fromkeys(WITHOUT_MOMENTUM)),
    )
    trunk_decay: float | None = option(
        None, "weight decay of the trunk (default: 0, of adamw 0.01)", group="training", type=number
    )
    trunk_clip: float | None = option(
        None, "norm that the trunk's gradient is cut to (default: it is not)", group="training", type=number
    )


class MLP(Dense):
    """An MLP of any depth, trained on the mean loss of a batch.

    sizes       inputs, the width of every hidden layer, outputs
    activation  of hidden layers: "logistic", "rational", "tanh", "relu", "gelu", "linear"
    last        of the last layer (None: the same)
    bias        whether layers have one
    dropout     the share of hidden activations that learning sets to 0, while others are divided by 1 - dropout. What is
                dropped is a function of seed, tick, micro-batch, layer and place: the same on every device and after a stop
    layer_norm  whether hidden layers have one, with gain and shift
    residual    whether hidden layers that are as wide as their input add it to what they give

    A hidden layer is: linear -> norm -> activation -> dropout -> + input; the last one: linear -> activation.

    optimiser, rate, momentum, betas, decay, clip  see hybrid/engine/trunk/_optimiser.py
    seed        draws weights and dropout: uniform weights of variance 2 / (fan in + fan out), or 2 / fan in under relu and gelu

    Memory: 8 bytes a weight (itself and its gradient) and 4 for each state of the optimiser: sgd 8, with momentum 12, adagrad
    12, adam 16; an example under way takes 8 bytes an activation, and 4 more in hidden layers with norm, input or gelu.
    Raises ValueError for what contradicts itself or is out of range.
    """

    spares = ("x_grad",)

    def __init__(
        self,
        sizes: Sequence[int],
        activation: str = "tanh",
        last: str | None = None,
        *,
        bias: bool = True,
        dropout: float = 0.0,
        layer_norm: bool = False,
        residual: bool = False,
        optimiser: str = "sgd",
        rate: float | None = None,
        momentum: float | None = None,
        betas: Sequence[float] | None = None,
        decay: float | None = None,
        clip: float | None = None,
        seed: int = 0,
    ):
        form = {"bias": bias, "layer_norm": layer_norm, "residual": residual}
        self.layers = layers(sizes, activation, last, dropout=dropout, **form)
        self.inputs, self.outputs = self.layers[0].inputs, self.layers[-1].outputs
        self.activation, self.last, self._form = activation, last, form
        self.dropout, self.seed = float(dropout), check.whole("seed", seed, 0)
        self.optimiser = Optimiser(optimiser, rate=rate, momentum=momentum, betas=betas, decay=decay, clip=clip)
        self.weights = initial(self.layers, np.random.default_rng([self.seed, 2]))
        self.optimiser.begin(self.weights)

    def place(self, device: Any, kernels: Any) -> None:
        """Compute on this device from here on, with these kernels; called within the work of a queue."""
        self._device, self._kernels = device, kernels.mlp
        self._weights = device.from_host(self.weights)
        self.gradient = Gradient(device, self.weights.size, kernels.optimiser.merge)
        self._work = self._kernels.workspace(max(layer.outputs for layer in self.layers), np.float32)
        self.optimiser.place(device, kernels, self.weights.size)

    def buffers(self) -> Buffers:
        """What layers give and keep, and the gradients of what they give."""
        kept: dict[str, int] = {}
        grads: dict[str, int] = {}
        for place, layer in enumerate(self.layers):
            out, before, spread = self._names(place)
            kept |= {before: layer.outputs} if layer.kept else {}
            kept |= {spread: 1} if layer.norm else {}
            kept[out] = layer.outputs
            grads[self._grad(place)] = layer.outputs
        return Buffers(kept | grads, begun=tuple(kept))

    def forward(self, slot: Slot) -> None:
        """Write slot.hidden_dev, and what backward needs, from slot.x_dev."""
        x = slot.x_dev
        for layer, passed, key in zip(self.layers, self._passed(slot), self._keys(slot), strict=True):
            self._kernels.forward(passed, layer, self._weights, x, key)
            x = passed.out

    def falling(self, slot: Slot) -> Iterator[int]:
        """Backward, layer by layer; see Stages."""
        passed, keys, weight_grad = self._passed(slot), self._keys(slot), self.gradient.next()
        for place in reversed(range(len(self.layers))):
            x = passed[place - 1].out if place else slot.x_dev
            x_grad, out_grad = (getattr(slot, f"{self._grad(number)}_dev") for number in (place - 1, place))
            written = (x_grad, weight_grad, out_grad, self._work)
            self._kernels.backward(*written, self.layers[place], self._weights, passed[place], x, keys[place])
            yield self.layers[place].at

    @property
    def spans(self) -> list[slice]:
        """A layer each, or several small ones; see Stages."""
        return spans(self.layers)

    def move(self, slot: Slot) -> None:
        """Move the weights against the gradient that was gathered since the last call, and clear it."""
        self.gradient.close()
        self.optimiser.move(self._weights, self.gradient.part(), slot.examples, slot.scale)

    def parameters(self) -> dict[str, np.ndarray]:
        """Weights and state of the optimiser, by name: arrays of the host."""
        return {"weights": self.weights} | self.optimiser.parameters()

    def describe(self) -> dict[str, Any]:
        """The arguments that make this object again, and its kind."""
        sizes = [self.inputs, *(layer.outputs for layer in self.layers)]
        form: dict[str, Any] = {"kind": self.kind, "sizes": sizes, "activation": self.activation, "last": self.last}
        return form | self._form | {"dropout": self.dropout} | self.optimiser.describe() | {"seed": self.seed}

    def _passed(self, slot: Slot) -> list[Passed]:
        """What each layer writes forward, in this slot."""
        found = []
        for place, layer in enumerate(self.layers):
            out, before, spread = (f"{name}_dev" for name in self._names(place))
            kept = (getattr(slot, before) if layer.kept else None, getattr(slot, spread) if layer.norm else None)
            found.append(Passed(getattr(slot, out), *kept))
        return found

    def _keys(self, slot: Slot) -> Sequence[int | None]:
        """The draws of the layers' dropout masks; None for all where nothing is dropped."""
        if not (self.dropout and slot.learns):
            return [None] * len(self.layers)
        drawn = np.random.SeedSequence((self.seed, slot.tick, slot.micro))
        return [int(key) >> 1 for key in drawn.generate_state(len(self.layers), np.uint64)]

    def _names(self, place: int) -> tuple[str, str, str]:
        """Of the arrays that a layer writes; what the last one gives are the hidden vectors."""
        out = "hidden" if place == len(self.layers) - 1 else f"inner{place}"
        return out, f"before{place}", f"spread{place}"

    def _grad(self, place: int) -> str:
        """Of the gradient of what a layer gives; -1: of what the first one reads."""
        return {-1: "x_grad", len(self.layers) - 1: "grad"}.get(place, f"inner{place}_grad")

    def _pairs(self) -> list[tuple[np.ndarray, Any]]:
        return [(self.weights, self._weights), *self.optimiser.pairs()]


def make(inputs: int, outputs: int, options: Mapping[str, Any], *, seed: int) -> Dense:
    """From options of the command line, see hybrid/engine/trunk/__init__.py: a unit where they allow it."""
    hidden = options["hidden"]
    sizes = [inputs, *(hidden if isinstance(hidden, list) else [hidden]), outputs]
    own = {"rate": options["trunk_rate"], "momentum": options["momentum"], "seed": seed}
    said: dict[str, Any] = {argument: options.get(name) for argument, name in SAID.items()}
    said = {argument: value for argument, value in said.items() if value is not None and value is not False}
    more = {argument: value for argument, value in said.items() if (argument, value) not in AS_UNIT}
    activation = options["activation"]
    if len(sizes) == 3 and not more and activation in OF_UNITS:
        return Trunk(*sizes, activation=activation, **own)
    return MLP(sizes, activation, **own, **more)


def rebuild(kind: str = "mlp", **facts: Any) -> Dense:
    """From describe()."""
    return MLP(**facts) if "sizes" in facts else Trunk(**facts)


def least(**facts: Any) -> int:
    """How many numbers a checkpoint holds at least."""
    sizes = facts["sizes"] if "sizes" in facts else [facts[name] for name in ("inputs", "hidden", "outputs")]
    return sum(math.prod(pair) for pair in itertools.pairwise(sizes))
