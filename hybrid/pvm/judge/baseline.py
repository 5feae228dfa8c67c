"""The error of a prediction of the next frame, beside that of a baseline: to repeat the last frame."""

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np

from ..result import StepResult


class Pair(NamedTuple):
    """A prediction and the frame that it predicts. Frames are (B, rows, columns, channels), floats in 0..1.

    seen    the result of a tick, with its prediction
    before  the frame of that tick
    after   the frame of the next
    """

    seen: StepResult
    before: np.ndarray
    after: np.ndarray

    @property
    def prediction(self) -> np.ndarray:
        """The prediction of `after`, in its shape."""
        assert self.seen.prediction is not None
        return self.seen.prediction.reshape(self.after.shape)

    @property
    def error(self) -> float:
        """Mean |prediction - frame| in 0..1."""
        return distance(self.prediction, self.after)

    @property
    def last_frame(self) -> float:
        """The same, if the frame before were the prediction."""
        return distance(self.before, self.after)


def distance(a: np.ndarray, b: np.ndarray) -> float:
    """Mean |a - b|."""
    return float(np.abs(np.subtract(a, b, dtype=np.float64)).mean())


def floats(image: np.ndarray) -> np.ndarray:
    """An image as float32 in 0..1."""
    return image * np.float32(1 / 255) if image.dtype == np.uint8 else np.asarray(image, np.float32)


def ratio(error: float | None, last_frame: float | None) -> float | None:
    """error / last_frame; None where nothing moved, or nothing was compared."""
    return None if error is None or not last_frame else error / last_frame


def judged(prediction: float | None, last_frame: float | None) -> dict[str, float | None]:
    """Both errors and their ratio, as reports name them."""
    return {
        "prediction_error": prediction,
        "last_frame_error": last_frame,
        "prediction_to_last_frame": ratio(prediction, last_frame),
    }


def compared(figures: Mapping[str, Any]) -> str:
    """Both errors in words."""
    if figures["prediction_error"] is None:
        return "too few frames to compare a prediction"
    said = f"prediction off by {figures['prediction_error']:.4f}, the last frame by {figures['last_frame_error']:.4f}"
    share = figures["prediction_to_last_frame"]
    return said if share is None else f"{said} (ratio {share:.3f})"


class Recent:
    """A feed that keeps its last frames, so that they are not decoded again to be compared."""

    def __init__(self, feed: Any, most: int = 8):
        self.feed, self.streams, self.most = feed, feed.streams, most
        self._images: dict[int, np.ndarray] = {}

    def __len__(self) -> int:
        return len(self.feed)

    def __getitem__(self, tick: int) -> Any:
        batch = self.feed[tick]
        self._images[tick] = batch.image
        self._images.pop(tick - self.most, None)
        return batch

    def image(self, tick: int) -> np.ndarray:
        """(B, rows, columns, channels) floats in 0..1."""
        return floats(self._images[tick] if tick in self._images else self[tick].image)


class Pairs:
    """Makes pairs of the ticks of a run: a prediction waits for its frame."""

    def __init__(self, frames: Recent):
        self.frames = frames
        self._waiting: StepResult | None = None

    def wait(self, seen: StepResult) -> None:
        """Begin with a prediction, as that of a model that was loaded."""
        self._waiting = seen

    def take(self, seen: StepResult) -> Pair | None:
        """The pair of the tick before this one, if that one had a prediction."""
        waiting, self._waiting = self._waiting, seen if seen.prediction is not None else None
        if waiting is None:
            return None
        return Pair(waiting, self.frames.image(waiting.tick), self.frames.image(seen.tick))
