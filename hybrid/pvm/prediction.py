"""The predicted frame: where its numbers lie on the tape, and how they become a picture."""

from typing import Any

import numpy as np

from .config import Config
from .layout import TapeLayout
from .wiring import Wiring


class Prediction:
    """The predicted frame, gathered from the units that predict patches; where patches overlap, the last unit counts.

    index  places on the tape of all numbers of the next frame, (F,) int32: of its prediction, and of the correction that
           residual units add
    dream  the same for the frame that a dream shows to the model
    """

    def __init__(self, wiring: Wiring, layout: TapeLayout, config: Config):
        self.shape, self.squeeze, self.compat = wiring.frame, config.squeeze, config.compat
        self.covered = np.zeros(int(np.prod(wiring.frame)), bool)
        next_frame = layout.steps - 1 if layout.newest_first else 0
        self.index = self._index(wiring, layout, next_frame)
        self.dream = self._index(wiring, layout, 0) if config.compat == "cuda2023" else self.index

    def _index(self, wiring: Wiring, layout: TapeLayout, step: int) -> list[np.ndarray]:
        """The places of the step-th frame that the units predict."""
        predictions = [layout.predicted_at] + [layout.residual_at] * bool((layout.residual_at >= 0).any())
        index = [np.zeros(self.covered.size, np.int32) for _ in predictions]
        numbers = np.arange(self.covered.size).reshape(wiring.frame)
        for u, patch in enumerate(wiring.patch):
            if patch is None:
                continue
            row, column, rows, columns = patch
            place = numbers[row : row + rows, column : column + columns].ravel()
            self.covered[place] = True
            before = step * (layout.signal_at[u + 1] - layout.signal_at[u])
            for places, at in zip(index, predictions, strict=True):
                places[place] = at[u] + before + np.arange(place.size)
        return index

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
