"""What a tick of a model gave its caller."""

from typing import NamedTuple

import numpy as np

from .heatmap import combine
from .wiring import Wiring


class StepResult(NamedTuple):
    """What a tick gave. Of a model with one stream the arrays are without their first axis.

    tick        its number, from 0
    error       (L,) mean |error| of each layer's units, as they see it (squeezed), of what they had predicted of this frame
    prediction  (B, rows, columns, channels) in 0..1: the next frame
    hidden      L arrays (B, units of the layer, hidden numbers): what each layer publishes
    heatmaps    (B, rows, columns) each, in 0..1: one of tile readouts, one a layer of unit readouts; [] without readouts
    """

    tick: int
    error: np.ndarray
    prediction: np.ndarray | None
    hidden: list[np.ndarray]
    heatmaps: list[np.ndarray]

    @property
    def heatmap(self) -> np.ndarray | None:
        """The heatmap, or the mean of several, of the size of the largest; None without readouts."""
        if len(self.heatmaps) < 2:
            return self.heatmaps[0] if self.heatmaps else None
        largest = max((heat.shape[-2:] for heat in self.heatmaps), key=lambda shape: shape[0] * shape[1])
        if self.heatmaps[0].ndim == 2:
            return combine(self.heatmaps, largest)
        return np.stack([combine(list(heats), largest) for heats in zip(*self.heatmaps, strict=True)])


def alone(seen: StepResult) -> StepResult:
    """Without the axis of streams."""
    hidden, heatmaps = ([part[0] for part in parts] for parts in (seen.hidden, seen.heatmaps))
    prediction = None if seen.prediction is None else seen.prediction[0]
    return seen._replace(prediction=prediction, hidden=hidden, heatmaps=heatmaps)


def by_layer(published: np.ndarray, wiring: Wiring) -> list[np.ndarray]:
    """What units publish, (B, H), by layer: (B, units, hidden), or (B, 1, all of it) where units of a layer differ."""
    ends = np.searchsorted(wiring.layer, np.arange(1, len(wiring.grids)))
    parts = np.split(published, np.append(0, np.cumsum(wiring.hidden))[ends], axis=1)
    sizes = [set(part.tolist()) for part in np.split(wiring.hidden, ends)]
    return [
        part.reshape(len(published), -1, size.pop() if len(size) == 1 else part.shape[1])
        for part, size in zip(parts, sizes, strict=True)
    ]
