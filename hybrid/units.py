"""Collections of small MLPs with separate weights; one call trains all of them."""

import io
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from . import check
from .backend import choose
from .machine import available
from .schedule.guards import Alone
from .storage import files, tables

# Layout of each unit's weights and signals in flat arrays.
#
# A unit is an MLP with one hidden layer: inputs -> hidden -> outputs. Units may differ in all three sizes, so every array is
# flat along the units, and offsets mark the start of each unit's part.
#
#     weights  [ unit 0: first (h, n) | first bias (h) | second (o, h) | second bias (o) | unit 1: ... ]
#     x        (B, X)   one row per batch element; unit u reads x[:, x_at[u] : x_at[u] + inputs[u]]
#     hidden   (B, H)   unit u writes  hidden[:, h_at[u] : h_at[u] + hidden[u]]
#     y        (B, Y)   unit u writes       y[:, y_at[u] : y_at[u] + outputs[u]]

MOST = 2**31 - 1  # sizes are int32


class UnitLayout(NamedTuple):
    """Sizes (int32) and offsets (int64, in elements, not bytes) of U units; a namedtuple, which Numba and launchers can read.

    inputs, hidden, outputs  (U,) int32
    w_at, x_at, h_at, y_at   (U + 1,) int64; the last entry is the total
    """

    inputs: np.ndarray
    hidden: np.ndarray
    outputs: np.ndarray
    w_at: np.ndarray
    x_at: np.ndarray
    h_at: np.ndarray
    y_at: np.ndarray


def unit_layout(inputs: ArrayLike, hidden: ArrayLike, outputs: ArrayLike) -> UnitLayout:
    """Returns the layout of units with these sizes; the three lists have equal length, one entry per unit.

    >>> unit_layout([150], [49], [150]).w_at[-1]
    np.int64(14899)

    Raises ValueError for lists of unequal length, an empty list, sizes below 1 or beyond int32, more than 2^62 weights.
    """
    sizes = {"inputs": inputs, "hidden": hidden, "outputs": outputs}
    arrays = {name: np.asarray(check.unmasked(name, value)) for name, value in sizes.items()}
    for name, array in arrays.items():
        if array.ndim != 1 or array.size == 0 or array.dtype.kind not in "iu":
            raise ValueError(f"{name}: expected a list of whole numbers, one per unit; found {sizes[name]!r}")
        if array.min() < 1:
            raise ValueError(f"{name}[{array.argmin()}] is {array.min()}; a unit needs at least 1")
        if array.max() > MOST:
            raise ValueError(f"{name}[{array.argmax()}] is {array.max()}; a unit has at most {MOST}")
        if array.size != arrays["inputs"].size:
            raise ValueError(
                f"{name} has {array.size} entries and inputs {arrays['inputs'].size}; expected one per unit"
            )
    n, h, o = (array.astype(np.int64) for array in arrays.values())
    if (total := float((h * (n + 1.0) + o * (h + 1.0)).sum())) > 2**62:
        raise ValueError(f"{total:.2g} weights; units have at most 2^62 together")
    each = (h * (n + 1) + o * (h + 1), n, h, o)
    offsets = (np.concatenate([[0], np.cumsum(size)]).astype(np.int64) for size in each)
    return UnitLayout(*(array.astype(np.int32) for array in (n, h, o)), *offsets)


ACTIVATIONS = ("logistic", "rational", "tanh", "relu")
SIZES = ("inputs", "hidden", "outputs")


class _Buffers(NamedTuple):
    """Device arrays for a batch of B examples."""

    loss: Any
    y: Any
    hidden: Any
    y_grad: Any
    hidden_grad: Any
    x: Any
    target: Any


class Units:
    """U small MLPs, inputs -> hidden -> outputs, trained by SGD on half the squared error of their outputs.

    count       U
    inputs, hidden, outputs  sizes: one number for all units, or (U,) whole numbers, one per unit
    activation  of both layers: "logistic", "rational", "tanh" or "relu"
    momentum    below 1
    seed        of the weights: uniform, of variance 2 / (fan in + fan out); biases are 0 (Glorot and Bengio 2010)
    device      as `choose` takes it

    `step(x, target)` trains them, `units(x)` returns their outputs. x is (U, n), or (B, U, n) for B examples per unit. If
    input sizes differ, x is (X,) or (B, X), the inputs of all units in sequence. Targets and outputs have the same forms.
    NumPy arrays are copied and cast to float32. `layout` gives each unit's weights, see `unit_layout`.

    Invalid arguments raise ValueError and change nothing; a call during another thread's call raises RuntimeError.
    """

    def __init__(
        self,
        count: int,
        inputs: ArrayLike,
        hidden: ArrayLike,
        outputs: ArrayLike,
        *,
        activation: str = "logistic",
        momentum: float = 0.0,
        seed: int = 0,
        device: str | None = "auto",
    ):
        sizes = [_sizes(name, size, count) for name, size in zip(SIZES, (inputs, hidden, outputs), strict=True)]
        self.count, self.layout = count, unit_layout(*sizes)
        self.activation = check.choice("activation", activation, ACTIVATIONS)
        self.momentum = check.number("momentum", momentum, 0)
        if self.momentum >= 1:
            raise ValueError(f"momentum: found {momentum}, expected a number below 1")
        rng = np.random.default_rng(check.whole("seed", seed, 0))
        self.backend = choose(device)
        self._device, self._kernels = self.backend.device, self.backend.units
        self._queue = self._device.inline("units", available())
        self._alone = Alone("Units", "give each thread units of its own")
        self._one = {"x": _shape(self.layout.inputs), "target": _shape(self.layout.outputs)}
        self._weights = self._device.from_host(_glorot(self.layout, rng))
        nothing = np.zeros(self._weights.size, np.float32) if self.momentum else None
        self._velocity = None if nothing is None else self._device.from_host(nothing)
        self._rates = self._device.empty((self.count,), np.float32)
        self._buffers: _Buffers | None = None
        self._weight_grad: Any = None  # only used by `backward`
        self._plan = self._queue.run(self._kernels.plan, self.layout).wait()

    def __reduce__(self) -> tuple[Any, ...]:
        return _made, (self._described() | self.parameters(), self.backend.name)

    @property
    def weights(self) -> np.ndarray:
        """A copy of all weights, (W,) float32, unit after unit, see `unit_layout`; assigned values are copied."""
        with self._alone:
            return np.array(self._device.to_host(self._weights))

    @weights.setter
    def weights(self, values: ArrayLike) -> None:
        self.restore({"weights": values})

    def parameters(self) -> dict[str, np.ndarray]:
        """Returns copies of "weights" and, with momentum, of "velocity", (W,) float32 each."""
        with self._alone:
            return {name: np.array(self._device.to_host(array)) for name, array in self._moving().items()}

    def restore(self, parameters: Mapping[str, ArrayLike]) -> None:
        """Copies arrays from `parameters` back; omitted ones keep their values."""
        for name in parameters:
            check.choice("parameters", name, tuple(self._moving()))
        self._write({name: _numbers(name, values, self._weights.shape) for name, values in parameters.items()})

    def weights_of(self, unit: int) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
        """Returns a copy of one unit's weights: first matrix (h, n), its bias (h,), second matrix (o, h), its bias (o,)."""
        check.whole("unit", unit, 0, self.count - 1)
        n, h, o, at = (int(part[unit]) for part in self.layout[:4])
        with self._alone:
            own = np.array(self._device.to_host(self._weights)[at : self.layout.w_at[unit + 1]])
        first, first_bias, second, second_bias = np.split(own, np.cumsum([h * n, h, o * h]))
        return first.reshape(h, n), first_bias, second.reshape(o, h), second_bias

    def step(self, x: ArrayLike, target: ArrayLike, rate: ArrayLike = 0.1) -> np.ndarray:
        """Updates all units once; returns their losses before the update, (U,) float32.

        rate  one number, or (U,), one per unit, of at least 0

        A loss is half the squared error, summed over outputs and batch; the step uses the gradient of that sum. A unit that
        diverges has a loss of NaN or infinity; the others continue.
        """
        x, target = self._examples("x", x), self._examples("target", target)
        if len(x) != len(target):
            raise ValueError(f"target: found {len(target)} examples, expected {len(x)}, as x has")
        each = _numbers("rate", rate, (self.count,)) if np.iterable(rate) else None
        least = check.number("rate", rate if each is None else each.min(), 0)
        with self._alone:
            room = self._filled(x, target)
            if each is not None:
                self._device.write(self._rates, each)
            written = (*room[:3], self._weights, self._velocity, room.y_grad, room.hidden_grad)
            rates = least if each is None else self._rates
            more = (self._plan, room.x, room.target, rates, self.momentum, self.activation)
            self._queue.run(self._kernels.step, *written, *more).wait()
            return np.array(self._device.to_host(room.loss))

    def __call__(self, x: ArrayLike) -> np.ndarray:
        """Returns the outputs for x, float32: (U, o) or (B, U, o); (Y,) or (B, Y) if output sizes differ."""
        flat = self._examples("x", x)
        with self._alone:
            y = np.array(self._device.to_host(self._forward(flat).y))
        return self._shaped("target", y, x)

    def backward(self, x: ArrayLike, gradient: ArrayLike, rate: float | None = None) -> np.ndarray:
        """Returns a loss's gradient by x from its gradient by the outputs; shapes and dtype as those of x and outputs.

        rate  the units are updated once by their own gradient, summed over the batch; None: no update

        For losses other than that of `step`. Outputs are recomputed, so backward passes may follow each other.
        """
        flat, upstream = self._examples("x", x), self._examples("target", gradient, "gradient")
        if len(flat) != len(upstream):
            raise ValueError(f"gradient: found {len(upstream)} examples, expected {len(flat)}, as x has")
        moving = None if rate is None else check.number("rate", rate, 0)
        with self._alone:
            room = self._forward(flat)
            if self._weight_grad is None:
                self._weight_grad = self._device.from_host(np.zeros(self._weights.size, np.float32))
            self._device.write(room.y_grad, upstream)
            x_grad = self._device.empty(flat.shape, np.float32)
            written = x_grad, self._weight_grad, room.y_grad, room.hidden_grad
            read = self._plan, self._weights, room.y, room.hidden, room.x, self.activation
            self._queue.run(self._kernels.backward, *written, *read).wait()
            if moving is None:
                self._device.write(self._weight_grad, np.zeros(self._weights.size, np.float32))
            else:
                moved = self._weights, self._velocity, self._weight_grad
                self._queue.run(self._kernels.update, *moved, moving, self.momentum).wait()
            found = np.array(self._device.to_host(x_grad))
        return self._shaped("x", found, x)

    def save(self, path: str | Path) -> None:
        """Writes the full state for `load`; OSError if the file cannot be written."""
        buffer = io.BytesIO()
        arrays: dict[str, Any] = self._described() | self.parameters()
        np.savez(buffer, **arrays)
        files.write(path, [buffer.getbuffer()])

    @classmethod
    def load(cls, path: str | Path, device: str | None = "auto") -> "Units":
        """Loads units written by `save`, on any device; OSError if unreadable, ValueError for another format."""
        expected = "units, as Units.save writes them"
        arrays = tables.read(path, expected)
        try:
            return _made(arrays, device)
        except KeyError as error:
            raise ValueError(f"{path}: no array {error}; expected {expected}") from None
        except (ValueError, TypeError) as error:
            raise ValueError(f"{path}: {error}; expected {expected}") from None

    def _moving(self) -> dict[str, Any]:
        return {"weights": self._weights} | ({} if self._velocity is None else {"velocity": self._velocity})

    def _write(self, parameters: Mapping[str, np.ndarray]) -> None:
        with self._alone:
            for name, values in parameters.items():
                self._device.write(self._moving()[name], values)

    def _described(self) -> dict[str, np.ndarray]:
        sizes = {name: getattr(self.layout, name) for name in SIZES}
        return sizes | {"activation": np.array(self.activation), "momentum": np.array(self.momentum)}

    def _examples(self, like: str, values: ArrayLike, name: str | None = None) -> np.ndarray:
        """Returns checked, flat values in the shape of x or target, (B, X) or (B, Y) float32; name: for messages."""
        one = self._one[like]
        return _numbers(name or like, values, one, batch=True).reshape(-1, int(np.prod(one)))

    def _shaped(self, name: str, flat: np.ndarray, x: ArrayLike) -> np.ndarray:
        """Returns the values in the user's shape, with a batch axis if x has one."""
        batch = () if np.ndim(x) == len(self._one["x"]) else (len(flat),)
        return flat.reshape(batch + self._one[name])

    def _forward(self, x: np.ndarray) -> _Buffers:
        """Returns the buffers with x, hidden and y filled."""
        room = self._filled(x)
        read = (self._plan, self._weights, room.x, self.activation)
        self._queue.run(self._kernels.forward, room.y, room.hidden, *read).wait()
        return room

    def _filled(self, x: np.ndarray, target: np.ndarray | None = None) -> _Buffers:
        """Returns the buffers with x and target filled."""
        if self._buffers is None or len(self._buffers.x) != len(x):
            self._buffers = None  # frees those of another batch size first
            X, H, Y = (int(at[-1]) for at in self.layout[4:])
            shapes = [(len(x), size) for size in (Y, H, Y, H, X, Y)]
            self._buffers = _Buffers(*(self._device.empty(shape, np.float32) for shape in [(self.count,), *shapes]))
        self._device.write(self._buffers.x, x)
        if target is not None:
            self._device.write(self._buffers.target, target)
        return self._buffers


def _made(arrays: Mapping[str, Any], device: str | None) -> Units:
    """Returns units from the arrays of `_described` and `parameters`; KeyError or ValueError if invalid."""
    sizes = [arrays[name] for name in SIZES]
    options = {"activation": str(arrays["activation"]), "momentum": float(arrays["momentum"])}
    wanted = (int(unit_layout(*sizes).w_at[-1]),)  # checked before memory is allocated
    moving = ("weights", "velocity") if options["momentum"] else ("weights",)
    values = {name: check.array(name, arrays[name], wanted, np.float32) for name in moving}
    made = Units(len(sizes[0]), *sizes, **options, device=device)  # type: ignore[arg-type]
    made._write(values)  # diverged units have NaN here
    return made


def _sizes(name: str, value: ArrayLike, count: int) -> np.ndarray:
    """Returns one size per unit; `unit_layout` checks the values."""
    check.whole("count", count, 1, check.ID)
    sizes = np.asarray(check.unmasked(name, value))
    if sizes.ndim == 0:
        return np.full(count, check.whole(name, value, 1, check.ID))
    if sizes.shape != (count,):
        found = f"{sizes.dtype} {sizes.shape}"
        raise ValueError(f"{name}: found {found}, expected a whole number, or ({count},), one per unit")
    return sizes


def _shape(sizes: np.ndarray) -> tuple[int, ...]:
    """Returns the shape of an example: (U, n), or (X,) if sizes differ."""
    return (len(sizes), int(sizes[0])) if (sizes == sizes[0]).all() else (int(sizes.sum(dtype=np.int64)),)


def _numbers(name: str, values: ArrayLike, shape: tuple[int, ...], *, batch: bool = False) -> np.ndarray:
    """Returns values as float32; ValueError unless they are finite numbers of this shape or, with `batch`, (B, *shape)."""
    found = check.plain(name, values)
    fits = found.shape == shape or (batch and found.size and found.shape[1:] == shape)
    if not fits or found.dtype.kind not in "biuf":
        more = f" or {('B', *shape)}".replace("'", "") if batch else ""
        raise ValueError(f"{name}: found {found.dtype} {found.shape}, expected numbers {shape}{more}")
    with np.errstate(over="ignore"):  # overflow gives infinity, which is rejected below
        found = found.astype(np.float32, copy=False)
    check.finite(name, found)
    return found


def _glorot(layout: Any, rng: np.random.Generator) -> np.ndarray:
    n, h, o = (size.astype(np.float32) for size in layout[:3])
    bound = np.stack([np.sqrt(6 / (n + h)), 0 * n, np.sqrt(6 / (h + o)), 0 * n], axis=1)
    n, h, o = (size.astype(np.int64) for size in layout[:3])
    weights = rng.random(int(layout.w_at[-1]), np.float32) * np.float32(2) - np.float32(1)
    weights *= np.repeat(bound.ravel(), np.stack([h * n, h, o * h, o], axis=1).ravel())
    return weights
