"""A trunk that is one MLP, of any depth: its layers, the optimiser of its weights, its stages."""

import itertools
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from .. import backend, check
from ..contract import Layer, Move, Passed
from ..schedule.schedule import Buffers
from ..schedule.slot import Slot
from ..settings import number, option, positive
from . import Gradient, Stages

ACTIVATIONS = ("logistic", "rational", "tanh", "relu", "gelu", "linear")
RECTIFIED = ("relu", "gelu")  # they halve the variance, so their weights begin larger
SPAN = 4096  # least numbers of a span: a message of 16 KiB takes about as long as its latency
ALIGNED = 32  # numbers at multiples of which spans begin, as GPUs load them
RATES = {"sgd": 0.1, "nesterov": 0.1, "adagrad": 0.01, "adam": 0.001, "adamw": 0.001}
WITHOUT_MOMENTUM = ("adagrad", "adam", "adamw")
ADAMS = ("adam", "adamw")
BETAS = (0.9, 0.999)
MOMENTUM = 0.9  # of Nesterov's, which is nothing without
DECAY = 0.01  # of AdamW
ONE_HIDDEN = ("inputs", "hidden", "outputs")  # under which older checkpoints have the sizes of one hidden layer


class MLP(Stages):
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

    optimiser, rate, momentum, betas, decay, clip  see Optimiser
    seed        draws weights and dropout: uniform weights of variance 2 / (fan in + fan out), or 2 / fan in under relu and gelu

    pickle and copy make one with parameters of its own, which is not yet placed.

    Memory: 8 bytes a weight (itself and its gradient) and 4 for each state of the optimiser: sgd 8, with momentum 12, adagrad
    12, adam 16; an example under way takes 8 bytes an activation, and 4 more in hidden layers with norm, input or gelu.
    Raises ValueError for what contradicts itself or is out of range.
    """

    kind = "mlp"
    places: tuple[str, ...] = ("cpu", "cuda")
    _device: Any = None  # until it is placed

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
        self.layers = _layers(sizes, activation, last, dropout=dropout, **form)
        self.inputs, self.outputs = self.layers[0].inputs, self.layers[-1].outputs
        self.activation, self.last, self._form = activation, last, form
        self.dropout, self.seed = float(dropout), check.whole("seed", seed, 0)
        self.weights = _initial(self.layers, np.random.default_rng([self.seed, 2]))
        size = self.weights.size
        self.optimiser = Optimiser(optimiser, size, rate=rate, momentum=momentum, betas=betas, decay=decay, clip=clip)

    def place(self, device: Any, kernels: Any) -> None:
        """Compute on this device from here on, with these kernels; called within the work of a queue."""
        self._device, self._kernels = device, kernels.mlp
        self._weights = device.from_host(self.weights)
        self.gradient = Gradient(device, self.weights.size, kernels.optimiser.merge)
        self._work = self._kernels.workspace(max(layer.outputs for layer in self.layers), np.float32)
        self.optimiser.place(device, kernels)

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
        """A layer each, those of fewer than SPAN numbers with the next; see Stages."""
        spans, end = [], self.weights.size
        for layer in reversed(self.layers):
            begin = -(-layer.at // ALIGNED) * ALIGNED
            if end - begin >= SPAN or not begin:
                spans.append(slice(begin, end))
                end = begin
        return spans

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

    def fetch(self) -> None:
        """Bring the parameters from the device to the host; nothing to do where the device shares its memory."""
        backend.fetch_arrays(self._device, self._pairs())

    def send(self) -> None:
        """Bring the parameters from the host to the device; nothing to do where the device shares its memory."""
        backend.send_arrays(self._device, self._pairs())

    def __reduce__(self) -> tuple[Any, ...]:
        if self._device:
            self.fetch()
        return _restored, (self.describe(), self.parameters())

    def _passed(self, slot: Slot) -> list[Passed]:
        """What each layer writes forward, in this slot."""
        passed = []
        for place, layer in enumerate(self.layers):
            out, before, spread = (f"{name}_dev" for name in self._names(place))
            kept = (getattr(slot, before) if layer.kept else None, getattr(slot, spread) if layer.norm else None)
            passed.append(Passed(getattr(slot, out), *kept))
        return passed

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


def _layers(
    sizes: Any, activation: str, last: str | None, *, bias: bool, dropout: float, layer_norm: bool, residual: bool
) -> list[Layer]:
    """One layer for every pair of neighbouring sizes; only hidden ones have norm, dropout and input.

    Raises ValueError for fewer than two sizes, or one below 1, an unknown activation, a dropout that is not from 0 to below
    1, and for norm, dropout and input where no layer could have them.
    """
    if not isinstance(sizes, Sequence | np.ndarray) or isinstance(sizes, str) or len(sizes) < 2:
        raise ValueError(f"sizes: found {sizes!r}, expected the inputs, the width of every hidden layer, the outputs")
    sizes = [check.whole(f"sizes[{place}]", size, 1) for place, size in enumerate(sizes)]
    check.choice("activation", activation, ACTIVATIONS)
    last = activation if last is None else check.choice("last", last, ACTIVATIONS)
    if check.number("dropout", dropout, 0) >= 1:
        raise ValueError(f"dropout: found {dropout}, expected a number below 1")
    for name, wanted in (("dropout", dropout), ("layer_norm", layer_norm)):
        if wanted and len(sizes) == 2:
            raise ValueError(f"{name}: found {wanted}, but sizes {sizes} have no hidden layer; leave it out")
    if residual and not any(n == o for n, o in itertools.pairwise(sizes[:-1])):
        raise ValueError(f"residual: found True, but in sizes {sizes} no hidden layer is as wide as its input")
    made: list[Layer] = []
    at = 0
    for place, (n, o) in enumerate(itertools.pairwise(sizes)):
        hidden = place < len(sizes) - 2
        has = (bool(bias), bool(layer_norm) and hidden, bool(residual) and hidden and n == o)
        made.append(Layer(n, o, at, *has, activation if hidden else last, float(dropout) if hidden else 0.0))
        at += _numbers(made[-1])
    return made


def _numbers(layer: Layer) -> int:
    """How many numbers a layer learns."""
    return layer.outputs * (layer.inputs + layer.bias + 2 * layer.norm)


def _initial(made: Sequence[Layer], rng: np.random.Generator) -> np.ndarray:
    """Uniform weights, of variance 2 / (fan in + fan out) (Glorot and Bengio 2010), or 2 / fan in under relu and gelu (He et
    al. 2015, arXiv:1502.01852); gains of 1, biases and shifts of 0.
    """
    weights = np.zeros(sum(map(_numbers, made)), np.float32)
    for layer in made:
        fans = layer.inputs + (0 if layer.activation in RECTIFIED else layer.outputs)
        bound, matrix = np.sqrt(6 / fans), layer.inputs * layer.outputs
        weights[layer.at : layer.at + matrix] = rng.uniform(-bound, bound, matrix)
        if layer.norm:
            gain = layer.at + matrix + layer.outputs * layer.bias
            weights[gain : gain + layer.outputs] = 1
    return weights


class Optimiser:
    """How a flat array of `size` weights moves, by the formulas of PyTorch.

    name      numbers kept a weight, beside itself and its gradient
              "sgd"       0; with momentum 1
              "nesterov"  1: SGD with Nesterov's momentum
              "adagrad"   1 (Duchi et al. 2011)
              "adam"      2 (Kingma and Ba 2015)
              "adamw"     2: Adam with decoupled weight decay (Loshchilov and Hutter 2019)
    rate      learning rate (None: 0.1, of adagrad 0.01, of adam and adamw 0.001)
    momentum  of sgd (None: 0) and nesterov (None: 0.9)
    betas     of adam and adamw (None: 0.9, 0.999)
    decay     weight decay (None: 0, of adamw 0.01): of all weights, biases and gains too
    clip      the norm that the gradient of all weights together is cut to; None: it is not

    Raises ValueError for another name, numbers out of range, and arguments that this optimiser does not have.
    """

    def __init__(
        self,
        name: str,
        size: int,
        *,
        rate: float | None = None,
        momentum: float | None = None,
        betas: Sequence[float] | None = None,
        decay: float | None = None,
        clip: float | None = None,
    ):
        self.name = check.choice("optimiser", name, tuple(RATES))
        self.rate = check.number("rate", RATES[name] if rate is None else rate, 0)
        self.momentum = _momentum(name, momentum)
        self.betas = _betas(name, betas)
        usual = DECAY if name == "adamw" else 0.0
        self.decay = check.number("decay", usual if decay is None else decay, 0)
        self.clip = None if clip is None else check.number("clip", clip, 0)
        if self.clip == 0:
            raise ValueError("clip: found 0, expected a number above 0; None does not clip")
        self.size = size
        states = {"adagrad": ["squares"], "adam": ["mean", "squares"], "adamw": ["mean", "squares"]}.get(self.name, [])
        states = ["velocity"] if self.momentum else states
        self.state = {name: np.zeros(size, np.float32) for name in states}
        self.updates = np.zeros(1, np.int64)  # which Adam divides by what its betas have summed up to

    def place(self, device: Any, kernels: Any) -> None:
        """Compute on this device from here on, with the kernels of this Backend; called within the work of a queue."""
        self._kernels = kernels.optimiser
        self._state = {name: device.from_host(array) for name, array in self.state.items()}
        self._work = self._kernels.workspace(self.size) if self.clip is not None else None

    def move(self, weights: Any, grad: Any, examples: float, scale: float) -> None:
        """Move weights of the device against the mean gradient, and clear its sum, which `grad` is."""
        self.updates += 1
        if self.clip is not None:
            self._kernels.clip(self._work, grad, 1 / examples, self.clip)
        move = Move(self.rate * scale, 1 / examples, self.decay, self._work)
        if self.name in ("sgd", "nesterov"):
            velocity = self._state.get("velocity")
            self._kernels.sgd(weights, velocity, grad, move, self.momentum, self.name == "nesterov")
        elif self.name == "adagrad":
            self._kernels.adagrad(weights, self._state["squares"], grad, move)
        else:
            state, decoupled = (self._state["mean"], self._state["squares"]), self.name == "adamw"
            self._kernels.adam(weights, *state, grad, move, self.betas, int(self.updates[0]), decoupled)

    def parameters(self) -> dict[str, np.ndarray]:
        """The state by name: arrays of the host."""
        return self.state | ({"updates": self.updates} if self.betas else {})

    def pairs(self) -> list[tuple[np.ndarray, Any]]:
        """Each array of the state beside that of the device."""
        return [(array, self._state[name]) for name, array in self.state.items()]

    def describe(self) -> dict[str, Any]:
        """The arguments that make it again; `optimiser` is its name."""
        momentum = None if self.name in WITHOUT_MOMENTUM else self.momentum
        betas = list(self.betas) if self.betas else None
        numbers = {"rate": self.rate, "momentum": momentum, "betas": betas, "decay": self.decay, "clip": self.clip}
        return {"optimiser": self.name} | numbers


def _momentum(name: str, momentum: float | None) -> float:
    if name in WITHOUT_MOMENTUM:
        if momentum is not None:
            raise ValueError(f'momentum: found {momentum} with optimiser "{name}", which has none; leave it out')
        return 0.0
    usual = MOMENTUM if name == "nesterov" else 0.0
    kept = check.number("momentum", usual if momentum is None else momentum, 0)
    if kept >= 1:
        raise ValueError(f"momentum: found {momentum}, expected a number below 1")
    if name == "nesterov" and not kept:
        raise ValueError('momentum: found 0 with optimiser "nesterov", expected more; "sgd" has none')
    return kept


def _betas(name: str, betas: Sequence[float] | None) -> tuple[float, float] | None:
    if name not in ADAMS:
        if betas is not None:
            raise ValueError(f'betas: found {betas} with optimiser "{name}", which has none; leave them out')
        return None
    pair: tuple[Any, ...] = BETAS if betas is None else tuple(betas)
    if len(pair) != 2 or not all(isinstance(beta, int | float) and 0 <= beta < 1 for beta in pair):
        raise ValueError(f"betas: found {betas}, expected two numbers from 0 to below 1")
    return pair[0], pair[1]


def widths(text: str) -> int | list[int]:
    """A whole number of at least 1, or several with commas between them."""
    sizes = [positive(part) for part in text.split(",")]
    return sizes[0] if len(sizes) == 1 else sizes


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


def make(inputs: int, outputs: int, options: Mapping[str, Any], *, seed: int) -> MLP:
    """From options of the command line, see hybrid/trunk/__init__.py."""
    hidden = options["hidden"]
    sizes = [inputs, *(hidden if isinstance(hidden, list) else [hidden]), outputs]
    moves = {"optimiser": options["trunk_optimiser"], "rate": options["trunk_rate"], "momentum": options["momentum"]}
    moves["decay"] = options["trunk_decay"]
    return MLP(sizes, options["activation"], dropout=options["dropout"], seed=seed, **moves)


def rebuild(**facts: Any) -> MLP:
    """From describe()."""
    return MLP(**({"sizes": _sizes(facts)} | {name: facts[name] for name in facts.keys() - set(ONE_HIDDEN)}))


def least(**facts: Any) -> int:
    """How many numbers a checkpoint holds at least."""
    return sum(math.prod(pair) for pair in itertools.pairwise(_sizes(facts)))


def _sizes(facts: Mapping[str, Any]) -> list[int]:
    sizes: list[int] = facts["sizes"] if "sizes" in facts else [facts[name] for name in ONE_HIDDEN]
    return sizes


def _restored(facts: dict[str, Any], parameters: dict[str, np.ndarray]) -> MLP:
    """A trunk as it was pickled or copied, not yet placed."""
    made = rebuild(**{name: value for name, value in facts.items() if name != "kind"})
    for name, array in made.parameters().items():
        array[:] = parameters[name]
    return made
