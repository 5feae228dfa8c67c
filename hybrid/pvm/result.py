"""What a tick of a model gives its caller."""

from typing import NamedTuple

import numpy as np

from .heads import Heads, combine
from .layout import TapeLayout
from .pipeline import Prediction, copied
from .slot import FrameSlot
from .wiring import Wiring


class StepResult(NamedTuple):
    """What a tick gave. Of a model with one stream the arrays are without their first axis.

    tick        its number, from 0
    error       (L,) float64: of each layer the mean |error| of what its units had predicted of this frame, as they see it
                (squeezed, where the configuration says so)
    prediction  (B, rows, columns, channels) in 0..1: the next frame
    hidden      L arrays (B, units of the layer, hidden numbers): what each layer publishes
    heatmaps    (B, rows, columns) each, in 0..1: one of tile readouts, one a layer of unit readouts; [] without readouts
    examples    frames that it learned from: one a stream

    Of a tick that is not complete, see `PVM.run`, prediction is None, hidden and heatmaps are [].
    """

    tick: int
    error: np.ndarray
    prediction: np.ndarray | None
    hidden: list[np.ndarray]
    heatmaps: list[np.ndarray]
    examples: int = 1

    @property
    def number(self) -> int:
        """The tick's number, by the name that ticks of an `Engine` have for it."""
        return self.tick

    @property
    def loss(self) -> float:
        """The mean of `error` over the layers."""
        return float(self.error.mean())

    @property
    def heatmap(self) -> np.ndarray | None:
        """The heatmap, or the mean of several, of the size of the largest; None without readouts."""
        if len(self.heatmaps) < 2:
            return self.heatmaps[0] if self.heatmaps else None
        largest = max((heat.shape[-2:] for heat in self.heatmaps), key=lambda shape: shape[0] * shape[1])
        if self.heatmaps[0].ndim == 2:
            return combine(self.heatmaps, largest)
        return np.stack([combine(list(heats), largest) for heats in zip(*self.heatmaps, strict=True)])


class Results:
    """Makes results of the slots of finished ticks.

    threads  that make the arrays of a complete one, where they are large
    """

    def __init__(
        self,
        wiring: Wiring,
        layout: TapeLayout,
        prediction: Prediction,
        readouts: Heads | None,
        streams: int,
        threads: int = 1,
    ):
        self._wiring, self._prediction, self._readouts, self._streams = wiring, prediction, readouts, streams
        self._threads = threads
        self._layer = wiring.layer.astype(np.intp)  # or bincount would convert it at every tick
        counts = np.diff(layout.signal_at) * layout.steps * streams
        self._predicted = np.bincount(wiring.layer, counts)  # numbers that a layer predicts in a tick

    def of(self, slot: FrameSlot) -> StepResult:
        """The result of a tick; its arrays are copies."""
        error = np.bincount(self._layer, slot.miss) / self._predicted
        if not slot.complete:
            return StepResult(slot.tick, error, None, [], [], self._streams)
        prediction = self._prediction.shown(slot.predicted, self._threads)
        hidden = by_layer(copied(slot.hidden, self._threads), self._wiring)
        heatmaps = self._readouts.shares(slot.heat) if self._readouts else []
        if self._streams == 1:
            prediction, hidden, heatmaps = prediction[0], [part[0] for part in hidden], [heat[0] for heat in heatmaps]
        return StepResult(slot.tick, error, prediction, hidden, heatmaps, self._streams)


def by_layer(published: np.ndarray, wiring: Wiring) -> list[np.ndarray]:
    """What units publish, (B, H), by layer: (B, units, hidden), or (B, 1, all of it) where units of a layer differ."""
    ends = np.searchsorted(wiring.layer, np.arange(1, len(wiring.grids)))
    parts = np.split(published, np.append(0, np.cumsum(wiring.hidden))[ends], axis=1)
    sizes = [set(part.tolist()) for part in np.split(wiring.hidden, ends)]
    return [
        part.reshape(len(published), -1, size.pop() if len(size) == 1 else part.shape[1])
        for part, size in zip(parts, sizes, strict=True)
    ]


def divergence(slot: FrameSlot, wiring: Wiring) -> str | None:
    """Which unit's error is not finite, in words; None where all are."""
    finite = np.isfinite(slot.miss)
    if finite.all():
        return None
    unit = int(finite.argmin())
    return (
        f"tick {slot.tick}: the error of unit {unit} (layer {wiring.layer[unit]}, row {wiring.row[unit]}, column "
        f"{wiring.column[unit]}) is {slot.miss[unit]}; lower the rates"
    )
