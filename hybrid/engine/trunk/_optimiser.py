"""Optimisers of a trunk's weights: their options checked, their state, one update a tick."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from ... import check
from ...contract import Move

RATES = {"sgd": 0.1, "nesterov": 0.1, "adagrad": 0.01, "adam": 0.001, "adamw": 0.001}
STATES = {"sgd": (), "nesterov": ("velocity",), "adagrad": ("squares",)} | dict.fromkeys(
    ("adam", "adamw"), ("mean", "squares")
)
WITHOUT_MOMENTUM = ("adagrad", "adam", "adamw")
BETAS = (0.9, 0.999)
MOMENTUM = 0.9  # of Nesterov's, which is nothing without
DECAY = 0.01  # of AdamW


class Optimiser:
    """How a flat array of weights moves, by the formulas of PyTorch.

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
        self.state: dict[str, np.ndarray] = {}

    def begin(self, weights: np.ndarray) -> None:
        """Make the state of these weights."""
        states = ("velocity",) if self.name == "sgd" and self.momentum else STATES[self.name]
        self.state = {name: np.zeros_like(weights) for name in states}
        self.updates = np.zeros(1, np.int64)  # which Adam divides by what its betas have summed up to

    def place(self, device: Any, kernels: Any, size: int) -> None:
        """Compute on this device from here on, with the kernels of this Backend; called within the work of a queue."""
        self._kernels = kernels.optimiser
        self._state = {name: device.from_host(array) for name, array in self.state.items()}
        self._work = self._kernels.workspace(size) if self.clip is not None else None

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
    found = check.number("momentum", (MOMENTUM if name == "nesterov" else 0.0) if momentum is None else momentum, 0)
    if found >= 1:
        raise ValueError(f"momentum: found {momentum}, expected a number below 1")
    if name == "nesterov" and not found:
        raise ValueError('momentum: found 0 with optimiser "nesterov", expected more; "sgd" has none')
    return found


def _betas(name: str, betas: Sequence[float] | None) -> tuple[float, float] | None:
    if name not in ("adam", "adamw"):
        if betas is not None:
            raise ValueError(f'betas: found {betas} with optimiser "{name}", which has none; leave them out')
        return None
    found: tuple[Any, ...] = BETAS if betas is None else tuple(betas)
    if len(found) != 2 or not all(isinstance(beta, int | float) and 0 <= beta < 1 for beta in found):
        raise ValueError(f"betas: found {betas}, expected two numbers from 0 to below 1")
    return found[0], found[1]
