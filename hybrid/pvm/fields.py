"""The learned parameters of a unit: its matrices, and the receptive fields of its hidden activations in the frame."""

from typing import Any, NamedTuple

import numpy as np

from .. import check
from .config import FEATURES, Config
from .layout import TapeLayout, runs
from .wiring import Wiring

NAMES = {
    "simple": ("hidden", "prediction"),
    "change": ("hidden", "prediction"),
    "complex": ("first", "hidden", "prediction"),
    "residual": ("context", "hidden", "context prediction", "prediction"),
    "complex_residual": ("context 1", "context 2", "first", "hidden", "context prediction", "prediction"),
}  # of a unit's dense layers, in the order of `TapeLayout`


class Field(NamedTuple):
    """The receptive fields of the hidden activations of one unit.

    row, column  origin, in the frame, of the region that reaches the unit
    weights      (hidden activations, rows, columns, channels) float64, of that region; 0 for pixels that do not reach the unit
    """

    row: int
    column: int
    weights: np.ndarray


def matrices(layout: TapeLayout, config: Config, flat: np.ndarray) -> dict[str, np.ndarray]:
    """Returns copies of the dense layers of a layout's one unit: "NAME.weights" (outputs, inputs) and "NAME.bias" (outputs,).

    flat  weights or velocities, as laid out

    NAME is "hidden" and "prediction"; a complex unit adds "first" before them. A residual unit adds "context" (a complex
    residual one "context 1", "context 2", then "first") and "context prediction". Inputs and outputs are in the order of the
    tape, see layout.py.
    """
    found = {}
    for name, k in zip(NAMES[config.unit], range(len(layout.rows)), strict=True):
        rows, columns, at = int(layout.rows[k]), int(layout.columns[k]), int(layout.w_at[k])
        found[f"{name}.weights"] = flat[at : at + rows * columns].reshape(rows, columns).copy()
        found[f"{name}.bias"] = flat[at + rows * columns : at + rows * (columns + 1)].copy()
    return found


class Projection:
    """The linear back-projection of hidden activations to the frame, through the weights of all units in between.

    It gives the derivative of a hidden number's pre-activation with respect to each pixel of a frame, which climbs one layer
    per tick. In layer 0 of simple units these are the input weights of the frame (times 0.8 with `squeeze`). Above, they are
    products of the input weights of all layers and the slopes of the activations in between at the last tick, averaged over
    streams. Lateral context, feedback and earlier frames are omitted.

    arrays  weights, flat as laid out; tape (B, T), activations of the tick for the slopes; and, for units that publish by their
            range, low and high (B, W)
    """

    def __init__(self, wiring: Wiring, layout: TapeLayout, config: Config, arrays: dict[str, np.ndarray]):
        self.wiring, self.layout = wiring, layout
        self.weights = arrays["weights"]
        self.slope = _slope(arrays["tape"].astype(np.float64), config.activation).mean(axis=0)
        self.stretch = (1 / (arrays["high"] - arrays["low"])).mean(axis=0) if "low" in arrays else None
        self._pixels = int(np.prod(wiring.frame))
        shares = dict(zip(FEATURES, (1.0, 0.5, 1 - config.tau, 0.5, 0.0), strict=True))  # slopes by the newest signal
        self._share = np.array([shares[name] for name in config.features]) * (0.8 if config.squeeze else 1.0)

    def field(self, unit: int) -> Field:
        """Returns the fields of a unit: those of the pre-activations of its hidden activations."""
        layout, layer = self.layout, self.wiring.layer
        size, h = self._pixels + int(layout.hidden.sum()), int(layout.hidden[unit])
        world, met = np.zeros((h, size)), np.zeros(size, bool)
        self._pull(unit, np.eye(h), world, met)
        below = [other for other in range(len(layer)) if layer[other] < layer[unit]]
        for other in sorted(below, key=lambda one: -layer[one]):
            at, many = int(layout.published_at[other]), int(layout.hidden[other])
            if met[at : at + many].any():
                first = int(layout.hidden_at[other])
                change = world[:, at : at + many] * self.slope[first : first + many]
                if self.stretch is not None:
                    change *= self.stretch[at : at + many]
                self._pull(other, change, world, met)
        frame = world[:, : self._pixels].reshape(-1, *self.wiring.frame)
        rows, columns = np.nonzero(np.any(met[: self._pixels].reshape(self.wiring.frame), axis=2))
        if not rows.size:
            return Field(0, 0, frame[:, :0, :0])
        top, left = int(rows.min()), int(columns.min())
        return Field(top, left, frame[:, top : rows.max() + 1, left : columns.max() + 1].copy())

    def _pull(self, unit: int, change: np.ndarray, world: np.ndarray, met: np.ndarray) -> None:
        """Adds to `world` the changes (h, W) that cause changes (h, numbers) of a unit's hidden sums, and marks `met`."""
        layout = self.layout
        first, last = layout.layer_at[unit : unit + 2]
        begin, end = layout.tape_at[unit : unit + 2]
        back = np.zeros((len(change), end - begin))  # changes of sums, then of activations, by tape position
        hidden = int(layout.hidden_at[unit] - begin)
        hidden_layer = next(k for k in range(first, last) if layout.out_at[k] == layout.hidden_at[unit])
        back[:, hidden : hidden + change.shape[1]] = change
        for k in range(hidden_layer, first - 1, -1):
            rows, columns, at = int(layout.rows[k]), int(layout.columns[k]), int(layout.w_at[k])
            out, into = int(layout.out_at[k] - begin), int(layout.in_at[k] - begin)
            sums = back[:, out : out + rows]
            if k != hidden_layer:
                sums = sums * self.slope[begin + out : begin + out + rows]
            matrix = self.weights[at : at + rows * columns].reshape(rows, columns)
            back[:, into : into + columns] += sums @ matrix
        self._spread(unit, back, world, met)

    def _spread(self, unit: int, back: np.ndarray, world: np.ndarray, met: np.ndarray) -> None:
        """Propagates from a unit's features to the world below it; features of its own layer and above are left out."""
        layout, layer = self.layout, self.wiring.layer
        begin, at = int(layout.tape_at[unit]), int(layout.features_at[unit])
        signals = int(layout.signal_at[unit + 1] - layout.signal_at[unit])
        block, features = int(layout.block[unit]), len(self._share)
        blocks = back[:, at - begin : at - begin + signals * features].reshape(len(back), -1, features, block)
        newest = np.einsum("hbfn,f->hbn", blocks, self._share).reshape(len(back), signals)
        parts = slice(*layout.part_at[unit : unit + 2])
        places = runs(layout.part_from[parts], layout.part_size[parts])
        owner = np.searchsorted(layout.published_at, places, "right") - 1
        lower = (places < self._pixels) | (layer[owner] < layer[unit])
        np.add.at(world.T, places[lower], newest.T[lower])
        met[places[lower]] = True


def unit_of(wiring: Wiring, layer: int, unit: int) -> int:
    """Returns the global number of a layer's unit; ValueError for an invalid one."""
    check.whole("layer", layer, 0, len(wiring.grids) - 1)
    units = np.flatnonzero(wiring.layer == layer)
    return int(units[check.whole("unit", unit, 0, len(units) - 1)])


def _slope(a: np.ndarray, activation: str) -> Any:
    """Returns the slope of an activation as a function of its value."""
    if activation == "logistic":
        return a * (1 - a)
    return 1 - a * a if activation == "tanh" else (1 - abs(2 * a - 1)) ** 2 / 2
