"""How many numbers a Predictive Vision Model takes in, gives out and learns."""

from __future__ import annotations

from itertools import pairwise
from typing import NamedTuple

import numpy as np

from .config import Config
from .wiring import Wiring, receptive


class Sizes(NamedTuple):
    """Numbers of each unit, (U,) int64."""

    signal: np.ndarray  # one frame of what it predicts
    context: np.ndarray
    input: np.ndarray  # all features of the signal, and the context
    output: np.ndarray  # all frames that it predicts


def sizes(config: Config, wiring: Wiring) -> Sizes:
    """What goes in and out of each unit."""
    signal, context = (
        np.array([wiring.hidden[ids].sum(dtype=np.int64) for ids in lists], np.int64)
        for lists in (wiring.signal, wiring.context)
    )
    for unit, patch in enumerate(wiring.patch):
        if patch is not None:
            signal[unit] += patch[2] * patch[3] * wiring.frame[2]
    return Sizes(signal, context, len(config.features) * signal + context, config.predict_steps * signal)


def parameters(config: Config, wiring: Wiring) -> tuple[int, int]:
    """Weights and biases of (the units, their readouts)."""
    units = sum(int((rows * (columns + 1)).sum()) for columns, rows in _dense(config, wiring))
    return units, _readouts(config, wiring)


def _dense(config: Config, wiring: Wiring) -> list[tuple[np.ndarray, np.ndarray]]:
    """Inputs and outputs of the dense layers of all units, (U,) each; biases are not counted among the inputs."""
    h, size = wiring.hidden.astype(np.int64), sizes(config, wiring)
    features, late = size.input - size.context, size.context if config.context_to_output else 0
    if config.unit == "simple":
        return [(size.input, h), (h + late, size.output)]
    if config.unit == "complex":
        return [(size.input - late, 2 * h), (2 * h + late, h), (h, size.output)]
    if config.unit == "residual":
        return [(size.context, 2 * h), (2 * h, size.output), (features + 2 * h, h), (h, size.output)]
    context = [(size.context, 3 * h), (3 * h, 2 * h), (2 * h, size.output)]
    return [*context, (features + 2 * h, 2 * h), (2 * h, h), (h, size.output)]


def _readouts(config: Config, wiring: Wiring) -> int:
    readout = config.readout
    if readout is None:
        return 0
    if readout.kind == "tile":
        tiles = receptive(wiring)
        rows, columns = readout.block[0] if readout.block else config.block
        total = sum(readout.hidden[0] * (int(wiring.hidden[ids].sum()) + 1) for ids in tiles)
        widths = (*readout.hidden, rows * columns * readout.depth)
        return total + len(tiles) * sum(high * (low + 1) for low, high in pairwise(widths))
    blocks = readout.block or ((1, 1),) * len(config.grids)
    enabled = readout.enabled or (True,) * len(config.grids)
    total = 0
    for layer, h in zip(wiring.layer.tolist(), wiring.hidden.tolist(), strict=True):
        if enabled[layer]:
            outputs = blocks[layer][0] * blocks[layer][1] * readout.depth
            total += 2 * h * (h + 1) + outputs * (2 * h + 1)
    return total
