"""The fused online step of collections of small MLPs on a GPU: equal units and ragged ones, beside PyTorch.

Two rivals compute the same step in PyTorch, from products of all units at once (`bmm`):
    bmm + SGD      as one would write it: forward, autograd's backward, torch.optim.SGD, fused
    bmm by hand    its fastest form that we know: backward by hand, the update added in place without a gradient in memory
Units of unequal size are padded with zeros to the largest; a padded hidden unit has a bias that switches it off, so
padding learns nothing. That costs PyTorch the traffic of the padding, which `padding` in its record tells.
"""

import itertools
from collections.abc import Callable, Iterator
from functools import cache, cached_property, partial
from typing import Any

import numpy as np

from bench.gpu_machine import Contest, Machine, near
from bench.measure import FIRST
from hybrid.units import UnitLayout, unit_layout
from tests.twins import units as oracle

EQUAL = (150, 49, 150)
SIDE, QUICK_UNITS = 119, 4  # 119 x 119 units
RAGGED = ((400, 2001), (49, 101), (100, 301))  # ranges of inputs, hidden, outputs
PARAMETERS = 200_000_000  # of the ragged units, about
RATE, MOMENTUM, ACTIVATION = 0.01, 0.9, "logistic"
SAMPLE = 13  # units checked against the oracle, spread over all, beside the largest and the smallest
OFF = -1e4  # a bias at which a hidden unit is exactly 0
BATCHES = (1, 4, 16)


class Collection:
    """Units, their inputs, targets and first weights, and what one step makes of a sample of them, in float64."""

    def __init__(self, layout: UnitLayout, batch: int, momentum: float, weights: np.ndarray):
        self.layout, self.batch, self.momentum, self.weights = layout, batch, momentum, weights
        self.parameters = int(layout.w_at[-1])
        self.counted = 16 if momentum else 8  # bytes a parameter: each number is read and written once
        rng = np.random.default_rng(batch)
        self.x = rng.random((batch, int(layout.x_at[-1])), np.float32)
        self.target = rng.random((batch, int(layout.y_at[-1])), np.float32)
        self.velocity = weights * np.float32(0.01) if momentum else None
        sizes = np.diff(layout.w_at)
        spread = np.linspace(0, sizes.size - 1, SAMPLE).astype(int)
        self.sample = np.unique([*spread, sizes.argmax(), sizes.argmin()])
        self.first = self.sampled(weights)
        self.loss, self.expected, self.speed = self._step()

    @cached_property
    def padded(self) -> list[np.ndarray]:
        """The first weights as PyTorch's rivals take them."""
        return padded(self.layout, self.weights, OFF)

    def spans(self) -> list[tuple[int, int]]:
        """Where the weights of the units of the sample begin and end."""
        return [(int(self.layout.w_at[u]), int(self.layout.w_at[u + 1])) for u in self.sample]

    def sampled(self, flat: np.ndarray) -> np.ndarray:
        """The weights of the units of the sample, one after the other."""
        return np.concatenate([flat[begin:end] for begin, end in self.spans()])

    def check(self, weights: np.ndarray | None, velocity: np.ndarray | None) -> None:
        """Raise unless a step from the first weights has led to these, in the units of the sample."""
        near("weights", weights, self.expected, self.first)
        if velocity is not None:
            near("velocity", velocity, self.speed, 0.01 * self.first)

    def check_loss(self, loss: np.ndarray) -> None:
        """Raise unless this is the loss of the first step, of all units."""
        near("loss", loss[self.sample], self.loss)

    def _step(self):
        sizes = [size[self.sample] for size in self.layout[:3]]
        some = unit_layout(*sizes)
        x, target = (self._columns(*pair) for pair in ((self.x, self.layout.x_at), (self.target, self.layout.y_at)))
        hidden, y = oracle.forward(some, self.first, x, ACTIVATION)
        velocity = None if self.velocity is None else self.sampled(self.velocity)
        return oracle.step(some, self.first, velocity, hidden, y, x, target, RATE, self.momentum, ACTIVATION)

    def _columns(self, signals: np.ndarray, at: np.ndarray) -> np.ndarray:
        return np.concatenate([signals[:, at[u] : at[u + 1]] for u in self.sample], axis=1)


def equal(machine: Machine, quick: bool) -> Iterator[Callable[[], Contest]]:
    """What makes the contests of units of one size: B = 1 without and with momentum, then streams that share the weights.

    On a first contact B = 1 alone.
    """
    for batch, momentum in ((1, 0.0), (1, MOMENTUM), *((batch, 0.0) for batch in BATCHES[1:] if not FIRST)):
        yield partial(contest, machine, "units.step", collection(quick, batch, momentum))


def collection(quick: bool, batch: int = 1, momentum: float = 0.0) -> Collection:
    """Units of one size."""
    layout, weights = _of_one_size(QUICK_UNITS if quick else SIDE * SIDE)
    return Collection(layout, batch, momentum, weights)


@cache
def _of_one_size(units: int) -> tuple[UnitLayout, np.ndarray]:
    """Their layout and first weights, drawn once for all contests."""
    layout = unit_layout(*([size] * units for size in EQUAL))
    return layout, _first_weights(layout)


def ragged(machine: Machine, quick: bool) -> Iterator[Callable[[], Contest]]:
    """What makes the contests of units of many sizes."""
    layout = ragged_layout(2 * 10**5 if quick else PARAMETERS)
    weights = _first_weights(layout)
    for batch in BATCHES[:1] if FIRST else BATCHES:
        yield partial(contest, machine, "units.ragged", Collection(layout, batch, 0.0, weights))


def ragged_layout(parameters: int) -> UnitLayout:
    """Units with sizes drawn from RAGGED, until they have so many parameters."""
    rng = np.random.default_rng(5)
    most = -(-parameters // (RAGGED[1][0] * (RAGGED[0][0] + 1))) + 1
    n, h, o = (rng.integers(*ends, most) for ends in RAGGED)
    many = int(np.searchsorted(np.cumsum(h * (n + 1) + o * (h + 1)), parameters)) + 1
    return unit_layout(n[:many], h[:many], o[:many])


def contest(machine: Machine, work: str, collection: Collection) -> Contest:
    """Ours and PyTorch's at one collection."""
    params = {"units": len(collection.layout.inputs), "batch": collection.batch, "momentum": collection.momentum}
    moved = float(collection.counted * collection.parameters)
    found = Contest(machine, work, params, collection.parameters, "parameters/s", moved)
    _ours(found, collection)
    for rival in (Autograd, ByHand) if machine.torch else ():
        _torch(found, collection, rival)
    return found


def _ours(found: Contest, collection: Collection) -> None:
    from gpu import units

    device, layout, batch = found.machine.device, collection.layout, collection.batch
    before = device.memory()["device"]
    weights = device.from_host(collection.weights)
    velocity = None if collection.velocity is None else device.from_host(collection.velocity)
    x, target = device.from_host(collection.x), device.from_host(collection.target)
    loss = device.empty(len(layout.inputs), np.float32)
    y, y_grad = (device.empty(target.shape, np.float32) for _ in range(2))
    hidden, hidden_grad = (device.empty((batch, int(layout.h_at[-1])), np.float32) for _ in range(2))
    signals = sum(array.nbytes for array in (x, target, loss, y, y_grad, hidden, hidden_grad))
    plan = found.do(units.plan, layout)
    written = (loss, y, hidden, weights, velocity, y_grad, hidden_grad)
    read = (plan, x, target, RATE, collection.momentum, ACTIVATION)
    more: dict[str, Any] = {"bytes_per_parameter": collection.counted}

    def check():
        """After the first step, which has sorted the units into launches: all memory that it needs is taken."""
        parts = {"weights": weights.nbytes, "velocity": velocity.nbytes if velocity else 0, "signals": signals}
        held = device.memory()["device"] - before
        more["memory"] = parts | {"plan": held - sum(parts.values()), "total": held}
        more["variant"] = plan.describe(batch)
        collection.check(_sampled(collection, device, weights), _sampled(collection, device, velocity))
        collection.check_loss(device.to_host(loss))

    found.ours(lambda: units.step(*written, *read), check, more)


def _sampled(collection: Collection, device, array) -> np.ndarray | None:
    """The numbers of the sample in a device array; None of None."""
    if array is None:
        return None
    return np.concatenate([device.to_host(array[begin:end]) for begin, end in collection.spans()])


def _torch(found: Contest, collection: Collection, rival: "type[Rival]") -> None:
    cuda = found.machine.torch.cuda
    more: dict[str, Any] = {"bytes_per_parameter": collection.counted}
    before = cuda.memory_allocated()
    made = rival(found.machine.torch, collection, "cuda")
    static = cuda.memory_allocated() - before
    more["padding"] = made.padding

    def step():
        if "memory" in more:
            made.step()
            return
        cuda.reset_peak_memory_stats()
        already = cuda.memory_allocated()
        made.step()
        cuda.synchronize()
        more["memory"] = {"total": static + cuda.max_memory_allocated() - already}

    who = f"{'padded ' * (made.padding > 1)}{rival.name}"
    found.torch(who, step, lambda: collection.check(*made.sampled()), more)


class Rival:
    """The step in PyTorch on padded arrays, one product for all units: x (U, B, N), matrices (U, H, N) and (U, O, H)."""

    name = ""

    def __init__(self, torch, collection: Collection, place: str):
        self.torch, self.collection, layout = torch, collection, collection.layout
        there = partial(torch.tensor, device=place)  # a copy
        self.parts = [there(part) for part in collection.padded]
        velocity = collection.velocity
        self.speeds = None if velocity is None else [there(part) for part in padded(layout, velocity, 0.0)]
        self.x = there(columns(collection.x, layout.x_at, 0.0))
        self.target = there(columns(collection.target, layout.y_at, 0.5))  # what a unit without weights answers
        self.padding = sum(part.numel() for part in self.parts) / collection.parameters

    def step(self) -> None:
        """One step."""
        raise NotImplementedError

    def forward(self):
        """Hidden signals and answers, (U, B, H) and (U, B, O)."""
        first, first_bias, second, second_bias = self.parts
        hidden = self.torch.baddbmm(first_bias, self.x, first.mT).sigmoid()
        return hidden, self.torch.baddbmm(second_bias, hidden, second.mT).sigmoid()

    def sampled(self) -> tuple[np.ndarray, np.ndarray | None]:
        """Weights and velocity of the units of the sample, as Collection.check takes them."""
        return self._cut(self.parts), None if self.speeds is None else self._cut(self.speeds)

    def _cut(self, parts) -> np.ndarray:
        rows = [part.detach()[self.collection.sample.tolist()].cpu().numpy() for part in parts]
        found = []
        for i, u in enumerate(self.collection.sample):
            n, h, o = (int(size[u]) for size in self.collection.layout[:3])
            cuts = (rows[0][i, :h, :n], rows[1][i, 0, :h], rows[2][i, :o, :h], rows[3][i, 0, :o])
            found += [cut.ravel() for cut in cuts]
        return np.concatenate(found)


class Autograd(Rival):
    """Forward by bmm, backward by autograd, update by torch.optim.SGD in one kernel for all parameters."""

    name = "bmm + SGD"

    def __init__(self, torch, collection: Collection, place: str):
        super().__init__(torch, collection, place)
        parameters = [part.requires_grad_() for part in self.parts]
        self.optimiser = torch.optim.SGD(parameters, lr=RATE, momentum=collection.momentum, fused=True)
        for part, speed in zip(parameters, self.speeds or (), strict=False):
            # PyTorch's buffer is the sum of gradients, ours the change of the weights
            self.optimiser.state[part]["momentum_buffer"] = speed.div_(-RATE)

    def step(self) -> None:
        """One step."""
        self.optimiser.zero_grad()
        _, y = self.forward()
        (0.5 * (y - self.target).square().sum()).backward()
        self.optimiser.step()

    def sampled(self):
        """As Rival.sampled: the buffers are turned into velocities."""
        weights, buffers = super().sampled()
        return weights, None if buffers is None else -RATE * buffers


class ByHand(Rival):
    """Backward by hand; each matrix learns in place by one kernel that reads and writes it once."""

    name = "bmm by hand"

    def step(self) -> None:
        """One step."""
        with self.torch.no_grad():
            hidden, y = self.forward()
            delta = (y - self.target) * y * (1 - y)
            inner = self.torch.bmm(delta, self.parts[2]) * hidden * (1 - hidden)
            for matrix, error, inputs in ((2, delta, hidden), (0, inner, self.x)):
                self._descend(matrix, error, inputs)
            for speed, part in zip(self.speeds or (), self.parts, strict=False):
                part.add_(speed)

    def _descend(self, which: int, error, inputs) -> None:
        """Matrix `which` and the bias behind it, or their velocities, learn."""
        (matrix, bias), keep = (self.speeds or self.parts)[which : which + 2], self.collection.momentum
        if self.speeds is None and self.collection.batch == 1:  # an outer product: faster without BLAS
            matrix.addcmul_(error.mT, inputs, value=-RATE)
        else:
            matrix.baddbmm_(error.mT, inputs, beta=1 if self.speeds is None else keep, alpha=-RATE)
        if self.speeds is not None:
            bias.mul_(keep)
        bias.sub_(error.sum(1, keepdim=True), alpha=RATE)


def padded(layout: UnitLayout, flat: np.ndarray, off: float) -> list[np.ndarray]:
    """Flat weights as (U, H, N), (U, 1, H), (U, O, H), (U, 1, O); what pads is 0, and `off` in a bias of the first layer."""
    n, h, o = (int(size.max()) for size in layout[:3])
    many = len(layout.inputs)
    fills = (((many, h, n), 0.0), ((many, 1, h), off), ((many, o, h), 0.0), ((many, 1, o), 0.0))
    first, first_bias, second, second_bias = (np.full(shape, fill, np.float32) for shape, fill in fills)
    for u in range(many):
        n, h, o = (int(size[u]) for size in layout[:3])
        parts = np.split(flat[layout.w_at[u] : layout.w_at[u + 1]], np.cumsum([h * n, h, o * h]))
        first[u, :h, :n], first_bias[u, 0, :h] = parts[0].reshape(h, n), parts[1]
        second[u, :o, :h], second_bias[u, 0, :o] = parts[2].reshape(o, h), parts[3]
    return [first, first_bias, second, second_bias]


def columns(signals: np.ndarray, at: np.ndarray, fill: float) -> np.ndarray:
    """Signals (B, X) as (U, B, most), padded."""
    found = np.full((at.size - 1, len(signals), int(np.diff(at).max())), fill, np.float32)
    for u, (begin, end) in enumerate(itertools.pairwise(at)):
        found[u, :, : end - begin] = signals[:, begin:end]
    return found


def _first_weights(layout: UnitLayout) -> np.ndarray:
    weights = np.random.default_rng(0).standard_normal(int(layout.w_at[-1]), np.float32)
    weights *= np.float32(0.1)
    return weights
