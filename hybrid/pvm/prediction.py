"""Pictures of what a model predicts: where the pixels of the next frame lie on the tape, and what numbers they are."""

import numpy as np

from .config import Config
from .layout import TapeLayout
from .wiring import Wiring


class Prediction:
    """The predicted frame, gathered from the units that see patches; of patches that overlap the last unit's counts.

    index  places on the tape of every number of the frame, (F,) int32 each: of the prediction of the next frame, and of what
           a residual unit adds
    dream  the same for the frame that a dream shows to the model
    """

    def __init__(self, wiring: Wiring, layout: TapeLayout, config: Config):
        self.shape, self.squeeze, self.compat = wiring.frame, config.squeeze, config.compat
        self.seen = np.zeros(int(np.prod(wiring.frame)), bool)
        next_frame = layout.steps - 1 if layout.newest_first else 0
        self.index = self._index(wiring, layout, next_frame)
        self.dream = self._index(wiring, layout, 0) if config.compat == "cuda2023" else self.index

    def _index(self, wiring: Wiring, layout: TapeLayout, step: int) -> list[np.ndarray]:
        """Of the step-th frame that the units predict."""
        predictions = [layout.predicted_at] + [layout.residual_at] * bool((layout.residual_at >= 0).any())
        index = [np.zeros(self.seen.size, np.int32) for _ in predictions]
        numbers = np.arange(self.seen.size).reshape(wiring.frame)
        for u, patch in enumerate(wiring.patch):
            if patch is None:
                continue
            row, column, rows, columns = patch
            place = numbers[row : row + rows, column : column + columns].ravel()
            self.seen[place] = True
            before = step * (layout.signal_at[u + 1] - layout.signal_at[u])
            for found, at in zip(index, predictions, strict=True):
                found[place] = at[u] + before + np.arange(place.size)
        return index

    def shown(self, parts: np.ndarray) -> np.ndarray:
        """The predicted frames (B, rows, columns, channels) in 0..1; parts (n, B, F) from the tape, where `index` says."""
        frame = self._sum(parts)
        return self._whole((frame - 0.1) / 0.8 if self.squeeze else frame)

    def dreamt(self, parts: np.ndarray) -> np.ndarray:
        """The frames that a dream shows; the CUDA original forgets to take them back from 0.1..0.9."""
        return self._whole(self._sum(parts)) if self.compat == "cuda2023" else self.shown(parts)

    def _sum(self, parts: np.ndarray) -> np.ndarray:
        return parts[0] if len(parts) == 1 else parts[0] + 2 * parts[1] - 1

    def _whole(self, frame: np.ndarray) -> np.ndarray:
        return np.where(self.seen, np.clip(frame, 0, 1), 0).astype(frame.dtype).reshape(-1, *self.shape)
