"""Readouts: small MLPs that learn heatmaps of a labelled object from hidden activations of the units.

Their errors do not reach the units. A "tile" readout belongs to a patch of the frame, and its input is every unit with that
patch in its receptive field; all tiles form one heatmap. A "unit" readout belongs to a unit, whose hidden activations are its
input; they form a heatmap per layer.
"""

import functools
from collections.abc import Sequence
from typing import Any

import numpy as np

from ..units import UnitLayout, unit_layout
from .config import Config, Readout
from .layout import TapeLayout, runs
from .wiring import Wiring, receptive

LIKELY = 0.5  # minimum peak of an object that is present
THRESHOLD = 32 / 255  # minimum excess of the peak over the median
# Minimum fraction of the image for the region's bounding rectangle; the original has 25 pixels of 96 x 96.
LEAST_SHARE = 25 / 96**2
GROW = 1.1  # scale factor of the rectangle about its centre; it may then exceed the image
# For a heatmap: the grid and the block of its parts, and the units that they belong to.
Map = tuple[tuple[int, int], tuple[int, int], list[int]]


class Heads:
    """All readouts of a model, and the arrays they compute in. Y numbers of all heatmaps.

    shapes             of the heatmaps, (rows, columns) each
    order              (Y,) the position of each readout output in the flat, concatenated heatmaps
    weights, velocity  laid out by hybrid/units.py; NumPy arrays until `place`
    """

    def __init__(self, wiring: Wiring, layout: TapeLayout, config: Config, streams: int, seed: int, dtype: Any):
        assert config.readout
        tile = config.readout.kind == "tile"
        self.config = config.readout
        self._low, self._span = (0.1, 0.8) if tile else (0.4, 0.6)  # of the targets of each original
        self.layout, read = layout_of(wiring, config)
        self.shapes, self.index = _places(wiring, _maps(wiring, config, config.readout))
        places = [runs(layout.hidden_at[units], layout.hidden[units]) for units in read]
        self.places = np.concatenate(places).astype(np.int32)
        self.order = np.concatenate(self.index)
        self.activation = "logistic" if tile else config.activation
        self._first = functools.partial(_start, self.layout, config, seed)
        self.weights = self._first().astype(dtype)
        self.velocity = np.zeros_like(self.weights) if self.config.momentum else None
        self.streams, self.dtype = streams, dtype

    def learned(self, weights: np.ndarray) -> bool:
        """True if the weights differ from their initial values; otherwise the heatmaps are noise."""
        return not np.array_equal(weights, self._first().astype(weights.dtype))

    def place(self, device: Any, kernels: Any, collect: Any) -> None:
        """Moves the computation to a device; to be called within the work of a queue.

        kernels, collect  `Units` and the `collect` of `Pvm`, see hybrid/contract.py
        """
        self._kernels, self._collect, self._plan = kernels, collect, kernels.plan(self.layout)
        self.weights, self._places = device.from_host(self.weights), device.from_host(self.places)
        self.velocity = None if self.velocity is None else device.from_host(self.velocity)
        x, h, y = (int(at[-1]) for at in (self.layout.x_at, self.layout.h_at, self.layout.y_at))
        self._x, self._hidden, self._y, self._y_grad, self._hidden_grad = (
            device.empty((self.streams, size), self.dtype) for size in (x, h, y, y, h)
        )
        self._loss = device.empty(len(self.layout.inputs), self.dtype)

    def forward(self, tape: Any) -> Any:
        """Returns the outputs for the hidden activations on the tape (B, T): (B, Y), the readouts concatenated."""
        self._collect(self._x, tape, self._places)
        self._kernels.forward(self._y, self._hidden, self._plan, self.weights, self._x, self.activation)
        return self._y

    def step(self, tape: Any, target: Any, rate: float) -> Any:
        """Returns the outputs, then learns from a target (B, Y) made by `target`."""
        self._collect(self._x, tape, self._places)
        written = (self._loss, self._y, self._hidden, self.weights, self.velocity, self._y_grad, self._hidden_grad)
        self._kernels.step(*written, self._plan, self._x, target, rate, self.config.momentum, self.activation)
        return self._y

    def maps(self, y: np.ndarray) -> list[np.ndarray]:
        """Returns the raw heatmaps (B, rows, columns) of outputs (B, Y)."""
        ends = np.cumsum([rows * columns for rows, columns in self.shapes])
        flat = np.zeros((len(y), ends[-1]), y.dtype)
        flat[:, self.order] = y
        parts = np.split(flat, ends[:-1], axis=1)
        return [part.reshape(-1, *shape) for part, shape in zip(parts, self.shapes, strict=True)]

    def shares(self, y: np.ndarray) -> list[np.ndarray]:
        """Returns the heatmaps in 0..1, 1 on the object: `maps` with the scaling of the targets inverted."""
        low, high = self._squeezed(np.array([0, 1], np.float32))
        return [np.clip((heat - low) / (high - low), 0, 1) for heat in self.maps(y)]

    def target(self, heats: list[np.ndarray]) -> np.ndarray:
        """Returns the target, (Y,), of heatmaps (rows, columns) in 0..1, one for each of `shapes`."""
        flat = np.concatenate([np.asarray(heat, self.dtype).ravel() for heat in heats])
        target: np.ndarray = self._squeezed(flat)[self.order]
        return target.astype(self.dtype)

    def _squeezed(self, mask: np.ndarray) -> np.ndarray:
        return self._span * mask + self._low


def layout_of(wiring: Wiring, config: Config) -> tuple[UnitLayout, list[np.ndarray]]:
    """Returns the weight layout of all readouts of a configuration with readouts, and the input units of each."""
    readout = config.readout
    assert readout
    maps = _maps(wiring, config, readout)
    units = [u for *_, own in maps for u in own]
    outputs = [rows * columns for _, (rows, columns), own in maps for _ in own]
    if readout.kind == "tile":
        read, hidden = receptive(wiring), [readout.hidden[0]] * len(units)
    else:
        read, hidden = [np.array([u]) for u in units], [2 * int(wiring.hidden[u]) for u in units]
    return unit_layout([int(wiring.hidden[ids].sum()) for ids in read], hidden, outputs), read


def _maps(wiring: Wiring, config: Config, readout: Readout) -> list[Map]:
    """Returns one heatmap of all tiles, or one of each layer that has readouts."""
    if readout.kind == "tile":
        tiles = [u for u, patch in enumerate(wiring.patch) if patch is not None]
        return [(wiring.grids[0], readout.block[0] if readout.block else config.block, tiles)]
    layers = len(wiring.grids)
    blocks, enabled = readout.block or ((1, 1),) * layers, readout.enabled or (True,) * layers
    return [
        (wiring.grids[layer], blocks[layer], np.flatnonzero(wiring.layer == layer).tolist())
        for layer in np.flatnonzero(enabled)
    ]


def _places(wiring: Wiring, maps: list[Map]) -> tuple[list[tuple[int, int]], list[np.ndarray]]:
    """Returns the heatmap shapes, and the positions of each readout's block in the flat, concatenated heatmaps."""
    shapes: list[tuple[int, int]] = []
    index: list[np.ndarray] = []
    first = 0
    for (high, wide), (rows, columns), units in maps:
        shapes.append((high * rows, wide * columns))
        for u in units:
            y = int(wiring.row[u]) * rows + np.arange(rows)[:, None]
            x = int(wiring.column[u]) * columns + np.arange(columns)
            index.append(np.ravel(first + y * wide * columns + x))
        first += high * rows * wide * columns
    return shapes, index


def _start(layout: UnitLayout, config: Config, seed: int) -> np.ndarray:
    """Returns U(-1, 1) / sqrt(inputs) for each dense layer."""
    rng, parts = np.random.default_rng([seed, 1]), []
    for n, h, o in zip(layout.inputs, layout.hidden, layout.outputs, strict=True):
        for columns, rows in ((n, h), (h, o)):
            parts.append(rng.uniform(-1, 1, rows * (columns + 1)) / np.sqrt(columns))
    return np.concatenate(parts)


# Heatmaps and boxes: the box that a heatmap shows, and the heatmap of a labelled box.
#
# A box is x, y, width, height in pixels, (4,) float32, x to the right and y down from the image's upper left corner; width 0
# means absent. A heatmap is (rows, columns), 0 to 1, of any size: it covers the image. The rule is that of
# braincorp/PVM (PVM_models/PVM_tracker.py), on floats instead of rounded bytes and whole pixels.


def combine(heatmaps: Sequence[np.ndarray], shape: tuple[int, ...]) -> np.ndarray:
    """Returns the mean of heatmaps of any sizes, (rows, columns) float32 in 0 to 1; shape: rows, columns and any others."""
    from scipy import ndimage

    # By cubic interpolation. Pixels are areas (grid_mode), and the edge extends: flat maps stay flat.
    how: Any = {"output": np.float64, "order": 3, "mode": "nearest", "grid_mode": True}
    resized = [ndimage.zoom(heatmap, np.divide(shape[:2], heatmap.shape), **how) for heatmap in heatmaps]
    return np.asarray(np.mean(resized, axis=0)).clip(0, 1).astype(np.float32)


def box_of(heatmap: np.ndarray) -> np.ndarray:
    """Returns the box around the maximum of a heatmap of the image's size; absent if no peak stands out.

    Readouts learn by squared error, so a heatmap estimates the probability that the object covers a pixel: a maximum below
    LIKELY means probably none. The original has no such bound, and reports an absent object at its most frequent position. The
    region is the part of the heatmap above the mean of maximum and median, 8-connected to the maximum.
    """
    from scipy import ndimage

    highest, median = heatmap.max(), np.median(heatmap)
    if not (highest >= LIKELY and highest > median + THRESHOLD):
        return np.zeros(4, np.float32)
    regions, _ = ndimage.label(heatmap > (highest + median) / 2, structure=np.ones((3, 3)))
    region = regions.flat[heatmap.argmax()]
    down, right = ndimage.find_objects(regions)[region - 1]
    width, height = right.stop - right.start, down.stop - down.start
    if not width * height > LEAST_SHARE * heatmap.size:
        return np.zeros(4, np.float32)
    x, y = right.start - (GROW - 1) / 2 * width, down.start - (GROW - 1) / 2 * height
    return np.array([x, y, GROW * width, GROW * height], np.float32)


def heat_target(box: np.ndarray, rows: int, columns: int, image_shape: tuple[int, ...]) -> np.ndarray:
    """Returns the fraction of each cell of a heatmap that a box covers, (rows, columns) float32; all 0 for an absent box.

    The fractions sum to the box's area inside the image, so a box smaller than a cell does not vanish.

    image_shape  rows, columns and any others
    """
    x, y, width, height = np.asarray(box, np.float64)
    down, right = rows / image_shape[0], columns / image_shape[1]  # cells per pixel
    share = np.outer(_covered(y * down, height * down, rows), _covered(x * right, width * right, columns))
    return share.astype(np.float32)


def _covered(start: float, length: float, cells: int) -> np.ndarray:
    """Returns the length of the intersection of each cell [i, i + 1) with [start, start + length), (cells,)."""
    low = np.arange(cells)
    return (np.minimum(low + 1, start + length) - np.maximum(low, start)).clip(0, 1)
