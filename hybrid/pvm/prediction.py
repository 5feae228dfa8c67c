"""The predicted frame: where its numbers lie on the tape, and how they become a picture."""

from typing import Any

import numpy as np

from .config import Config
from .layout import TapeLayout
from .wiring import Wiring


class Prediction:
    """The predicted frame, gathered from the units that predict patches; where patches overlap, the last unit counts.

    layout  of all units, or of some
    units   (u,) which those are; None: all

    unit   (F,) which unit predicts each number of the frame; -1: none
    place  (P,) the numbers of the frame that units of the layout predict; all F of them where it has all units
    index  places on the tape of these numbers in the next frame, (P,) int32: of the prediction, and of the correction that
           residual units add
    dream  the same for the frame that a dream shows to the model
    """

    def __init__(self, wiring: Wiring, layout: TapeLayout, config: Config, units: np.ndarray | None = None):
        self.shape, self.squeeze, self.compat = wiring.frame, config.squeeze, config.compat
        self.unit, self._within = _seen(wiring)
        self.covered = self.unit >= 0
        self.place = np.arange(self.unit.size) if units is None else np.flatnonzero(np.isin(self.unit, units))
        number = np.zeros(len(wiring.hidden), np.int64)  # in the layout
        number[np.arange(len(wiring.hidden)) if units is None else units] = np.arange(len(layout.hidden))
        self._number = number[self.unit[self.place]]
        next_frame = layout.steps - 1 if layout.newest_first else 0
        self.index = self._index(layout, next_frame)
        self.dream = self._index(layout, 0) if config.compat == "cuda2023" else self.index

    def _index(self, layout: TapeLayout, step: int) -> list[np.ndarray]:
        """The places of the step-th frame that the units predict; 0 for what no unit predicts."""
        predictions = [layout.predicted_at] + [layout.residual_at] * bool((layout.residual_at >= 0).any())
        before = step * np.diff(layout.signal_at)[self._number] + self._within[self.place]
        covered = self.covered[self.place]
        return [np.where(covered, at[self._number] + before, 0).astype(np.int32) for at in predictions]

    def shown(self, parts: np.ndarray) -> np.ndarray:
        """The predicted frames, (B, rows, columns, channels) in 0..1.

        parts  (n, B, F), gathered from the tape at `index`
        """
        frame = self._sum(parts)
        return self._whole((frame - 0.1) / 0.8 if self.squeeze else frame)

    def dreamt(self, parts: np.ndarray) -> np.ndarray:
        """The frames that a dream shows; the CUDA original does not stretch them back from 0.1..0.9.

        parts  (n, B, F), gathered from the tape at `dream`
        """
        return self._whole(self._sum(parts)) if self.compat == "cuda2023" else self.shown(parts)

    def _sum(self, parts: np.ndarray) -> Any:
        return parts[0] if len(parts) == 1 else parts[0] + 2 * parts[1] - 1

    def _whole(self, frame: np.ndarray) -> np.ndarray:
        return np.where(self.covered, np.clip(frame, 0, 1), 0).astype(frame.dtype).reshape(-1, *self.shape)


def _seen(wiring: Wiring) -> tuple[np.ndarray, np.ndarray]:
    """(F,) which unit predicts each number of the frame (-1: none), and (F,) the how-manieth of its patch that is."""
    unit, within = np.full(wiring.frame, -1), np.zeros(wiring.frame, np.int64)
    for u, patch in enumerate(wiring.patch):
        if patch is not None:
            row, column, rows, columns = patch
            part = slice(row, row + rows), slice(column, column + columns)
            unit[part], within[part] = u, np.arange(unit[part].size).reshape(unit[part].shape)
    return unit.ravel(), within.ravel()
