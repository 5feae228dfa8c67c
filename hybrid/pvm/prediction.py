"""The predicted frame: where its numbers lie on the tape, and how they become a picture."""

from typing import Any

import numpy as np

from .config import Config
from .layout import TapeLayout
from .portions import in_portions
from .wiring import Wiring


class Prediction:
    """The predicted frame, gathered from the units that predict patches; where patches overlap, the last unit counts.

    layout  of all units, or of some
    units   (u,) which those are; None: all

    unit   (F,) which unit predicts each number of the frame; -1: none
    place  (P,) the numbers of the frame that units of the layout predict; all F of them where it has all units
    index  places on the tape of these numbers in the next frame, (P,) int32: of the prediction, and of the correction that
           residual units add
    """

    def __init__(self, wiring: Wiring, layout: TapeLayout, config: Config, units: np.ndarray | None = None):
        self.shape, self.squeeze = wiring.frame, config.squeeze
        self.unit, self._within = _seen(wiring)
        self.covered = self.unit >= 0
        self._missing = None if self.covered.all() else ~self.covered
        self.place = np.arange(self.unit.size) if units is None else np.flatnonzero(np.isin(self.unit, units))
        number = np.zeros(len(wiring.hidden), np.int64)  # in the layout
        number[np.arange(len(wiring.hidden)) if units is None else units] = np.arange(len(layout.hidden))
        self._number = number[self.unit[self.place]]
        next_frame = layout.steps - 1 if layout.newest_first else 0
        self.index = self._index(layout, next_frame)

    def _index(self, layout: TapeLayout, step: int) -> list[np.ndarray]:
        """The places of the step-th frame that the units predict; 0 for what no unit predicts."""
        predictions = [layout.predicted_at] + [layout.residual_at] * bool((layout.residual_at >= 0).any())
        before = step * np.diff(layout.signal_at)[self._number] + self._within[self.place]
        covered = self.covered[self.place]
        return [np.where(covered, at[self._number] + before, 0).astype(np.int32) for at in predictions]

    def shown(self, parts: np.ndarray, threads: int = 1) -> np.ndarray:
        """The predicted frames, (B, rows, columns, channels) in 0..1.

        parts    (n, B, F), gathered from the tape at `index`
        threads  that make them, where they are large
        """
        return self._whole(parts, self.squeeze, threads)

    def _whole(self, parts: np.ndarray, squeezed: bool, threads: int) -> np.ndarray:
        """In 0..1, and 0 where no unit predicts; portion by portion, so that only one array of this size is made."""
        found = np.empty(parts.shape[1:], parts.dtype)

        def fill(these: slice) -> None:
            for stream, frame in enumerate(found):
                out = frame[these]
                np.copyto(out, _sum(parts[:, stream, these]))
                if squeezed:
                    np.divide(np.subtract(out, 0.1, out=out), 0.8, out=out)
                np.clip(out, 0, 1, out=out)
                if self._missing is not None:
                    out[self._missing[these]] = 0

        in_portions(fill, self.covered.size, threads)
        return found.reshape(-1, *self.shape)


def _sum(parts: np.ndarray) -> Any:
    return parts[0] if len(parts) == 1 else parts[0] + 2 * parts[1] - 1


def _seen(wiring: Wiring) -> tuple[np.ndarray, np.ndarray]:
    """(F,) which unit predicts each number of the frame (-1: none), and (F,) the how-manieth of its patch that is."""
    unit, within = np.full(wiring.frame, -1), np.zeros(wiring.frame, np.int64)
    for u, patch in enumerate(wiring.patch):
        if patch is not None:
            row, column, rows, columns = patch
            part = slice(row, row + rows), slice(column, column + columns)
            unit[part], within[part] = u, np.arange(unit[part].size).reshape(unit[part].shape)
    return unit.ravel(), within.ravel()
