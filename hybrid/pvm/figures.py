"""Prediction errors of a model on its video."""

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np

from .config import Config
from .model import StepResult


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
        """The same, with the previous frame as the prediction."""
        return distance(self.before, self.after)


def distance(a: np.ndarray, b: np.ndarray) -> float:
    """Returns mean |a - b|."""
    return float(np.abs(np.subtract(a, b, dtype=np.float64)).mean())


def floats(image: np.ndarray) -> np.ndarray:
    """Returns an image as float32 in 0..1."""
    return image * np.float32(1 / 255) if image.dtype == np.uint8 else np.asarray(image, np.float32)


def judged(prediction: float | None, last_frame: float | None) -> dict[str, float | None]:
    """Returns both errors by their report names, and their ratio: None if nothing changed, or nothing was compared."""
    return {
        "prediction_error": prediction,
        "last_frame_error": last_frame,
        "prediction_to_last_frame": prediction / last_frame if prediction is not None and last_frame else None,
    }


def compared(figures: Mapping[str, Any]) -> str:
    """Returns both errors as text."""
    if figures["prediction_error"] is None:
        return "too few frames to compare a prediction"
    text = f"prediction off by {figures['prediction_error']:.4f}, the last frame by {figures['last_frame_error']:.4f}"
    share = figures["prediction_to_last_frame"]
    return text if share is None else f"{text} (ratio {share:.3f})"


def bounds(config: Config) -> tuple[float, float]:
    """Returns the range of published hidden activations."""
    return (-1.0, 1.0) if config.activation == "tanh" and config.publish == "raw" else (0.0, 1.0)
