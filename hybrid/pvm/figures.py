"""Statistics of a model on its video: prediction errors, and uninformative hidden numbers."""

from collections.abc import Collection, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from .config import Config
from .model import StepResult

EDGE = 0.02  # of the range: the distance from an end that counts as saturated
MOSTLY = 0.9  # of the frames
STILL = 0.01  # of the range: a number that varies less over all frames is dead
WINDOW = 32  # number of frames considered; at least 2


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


class Counts(NamedTuple):
    """The statistics of the hidden numbers of one layer, or of all.

    units      number of MLPs; `dead_units`: those with only dead numbers
    numbers    hidden numbers of all of them
    saturated  numbers within 2 % of an end of their range in at least 9 of 10 frames, where they hardly learn
    dead       numbers that varied by less than 1 % of their range over all frames; may be saturated too
    """

    units: int
    numbers: int
    saturated: int
    dead: int
    dead_units: int

    def __str__(self) -> str:
        text = f"{_percent(self.saturated, self.numbers)} saturated, {_percent(self.dead, self.numbers)} dead"
        whole = f"{self.dead_units} whole unit{'s' * (self.dead_units > 1)}"
        return f"{text} ({whole})" if self.dead_units else text


def count(hidden: np.ndarray, low: float = 0.0, high: float = 1.0) -> Counts:
    """Counts the saturated and dead numbers of a layer.

    hidden  (frames, units, numbers) of at least two frames, in the range low..high
    """
    span = high - low
    at_end = (hidden <= low + EDGE * span) | (hidden >= high - EDGE * span)
    dead = np.ptp(hidden, axis=0) < STILL * span
    saturated = at_end.mean(axis=0) >= MOSTLY
    return Counts(len(dead), dead.size, int(saturated.sum()), int(dead.sum()), int(dead.all(axis=1).sum()))


def count_layers(frames: Collection[Sequence[np.ndarray]], config: Config) -> list[Counts]:
    """Returns the counts of each layer; frames are `StepResult.hidden` of one stream. [] for fewer than two frames."""
    if len(frames) < 2:
        return []
    return [count(np.stack(layer), *bounds(config)) for layer in zip(*frames, strict=True)]


def bounds(config: Config) -> tuple[float, float]:
    """Returns the range of published hidden numbers."""
    return (-1.0, 1.0) if config.activation == "tanh" and config.publish == "raw" else (0.0, 1.0)


def saturation(layers: Sequence[dict[str, int]]) -> str:
    """Returns the saturated and dead fractions of all layers as text; layers as in a report."""
    if not layers:
        return "too few frames to tell which are saturated or dead"
    counts = Counts(*(sum(layer[name] for layer in layers) for name in Counts._fields))
    return f"{counts}, of {counts.numbers:,}"


def _percent(part: int, whole: int) -> str:
    share = 100 * part / whole
    return f"{share:.0f} %" if share >= 1 or not part else "< 1 %"
