"""The tracking benchmark: trackers follow labelled videos, and are scored on overlap, distance and presence.

Its measures are those of braincorp/PVM (PVM_tools/benchmark.py), after Wu, Lim and Yang, Online object tracking: a
benchmark (CVPR 2013). The table quotes those that do not depend on how many pixels a frame has. Boxes are those of
`hybrid.pvm.heads`; one without area is absent.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any, NamedTuple, Protocol

import numpy as np

from .config import Config
from .result import StepResult

# Hidden numbers without information: those that stay at an end of their range, and those that do not move.

EDGE = 0.02  # of the range: what is nearer to an end counts as at it
MOSTLY = 0.9  # of the frames
STILL = 0.01  # of the range: what moves less over all frames is dead
WINDOW = 32  # how many frames are looked at; fewer than 2 tell nothing


class Counts(NamedTuple):
    """Of the hidden numbers of one layer, or of all.

    units      MLPs; `dead_units`: those of which every number is dead
    numbers    hidden numbers of all of them
    saturated  numbers within 2 % of an end of their range in at least 9 of 10 frames: there they hardly learn
    dead       numbers that moved by less than 1 % of their range over all frames; may be saturated too
    """

    units: int
    numbers: int
    saturated: int
    dead: int
    dead_units: int

    def __str__(self) -> str:
        said = f"{_percent(self.saturated, self.numbers)} saturated, {_percent(self.dead, self.numbers)} dead"
        whole = f"{self.dead_units} whole unit{'s' * (self.dead_units > 1)}"
        return f"{said} ({whole})" if self.dead_units else said


def count(hidden: np.ndarray, low: float = 0.0, high: float = 1.0) -> Counts:
    """How much of a layer is saturated and dead.

    hidden  (frames, units, numbers) of at least two frames, in the range low..high
    """
    span = high - low
    at_end = (hidden <= low + EDGE * span) | (hidden >= high - EDGE * span)
    dead = np.ptp(hidden, axis=0) < STILL * span
    saturated = at_end.mean(axis=0) >= MOSTLY
    return Counts(len(dead), dead.size, int(saturated.sum()), int(dead.sum()), int(dead.all(axis=1).sum()))


def count_layers(frames: Collection[Sequence[np.ndarray]], config: Config) -> list[Counts]:
    """The same of each layer; frames are those of `StepResult.hidden` of one stream. [] for fewer than two frames."""
    if len(frames) < 2:
        return []
    return [count(np.stack(layer), *bounds(config)) for layer in zip(*frames, strict=True)]


def bounds(config: Config) -> tuple[float, float]:
    """The range of published hidden numbers."""
    return (-1.0, 1.0) if config.activation == "tanh" and config.publish == "raw" else (0.0, 1.0)


def saturation_said(layers: Sequence[dict[str, int]]) -> str:
    """How much of all layers is saturated and dead, in words; layers as in a report."""
    if not layers:
        return "too few frames to tell which are saturated or dead"
    counts = Counts(*(sum(layer[name] for layer in layers) for name in Counts._fields))
    return f"{counts}, of {counts.numbers:,}"


def _percent(part: int, whole: int) -> str:
    share = 100 * part / whole
    return f"{share:.0f} %" if share >= 1 or not part else "< 1 %"


# The error of a prediction of the next frame, beside that of a baseline: to repeat the last frame.


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


# Where the curves of Scores are taken. Divisions and no steps: .2 and 1, the places quoted, are met exactly.
PIXELS = np.arange(51.0)
RELATIVE = np.arange(1000) / 1000
OVERLAPS = np.linspace(0, 1, 100)
HALVES = np.arange(1000) / 100


class Tracker(Protocol):
    """What the benchmark asks. `prime` begins a video, and forgets the one before."""

    def prime(self, image: np.ndarray, box: np.ndarray) -> None:
        """The target is in this image, and here."""

    def track(self, image: np.ndarray) -> np.ndarray:
        """The target's box in this image; the priming image is tracked as well."""


class Null:
    """Keeps the priming box."""

    def prime(self, image: np.ndarray, box: np.ndarray) -> None:
        self._box = np.array(box, np.float32)

    def track(self, image: np.ndarray) -> np.ndarray:
        return self._box


class Centre:
    """Always says the middle of the image.

    size  of the box, as a share of the image's rows and columns
    """

    def __init__(self, size: float = 0.2):
        self.size = size

    def prime(self, image: np.ndarray, box: np.ndarray) -> None:
        pass

    def track(self, image: np.ndarray) -> np.ndarray:
        whole = np.array([image.shape[1], image.shape[0]])
        return np.concatenate([(1 - self.size) / 2 * whole, self.size * whole]).astype(np.float32)


class Track(NamedTuple):
    """What a tracker said of labelled frames, beside the labels; frames of several videos may stand in one."""

    truth: np.ndarray  # (n, 4) float32, the labels
    found: np.ndarray  # (n, 4) float32
    size: np.ndarray  # (n, 2) int64, columns and rows of the image


def follow(trackers: Mapping[str, Tracker], video: Iterable[tuple[np.ndarray, np.ndarray | None]]) -> dict[str, Track]:
    """Show a video to all trackers, frame by frame.

    video  pairs of image and label; a label is the target's box, or None where nobody has looked. Such a frame is shown
           to the trackers, and not counted.

    The first label with a target primes the trackers. Frames before it are not shown: all count as "absent" said.
    """
    truth, size = [], []
    found: dict[str, list[np.ndarray]] = {name: [] for name in trackers}
    primed = False
    for at, (image, label) in enumerate(video):
        box = None if label is None else _box(f"label of frame {at}", label)
        if not primed and box is not None and _present(box):
            primed = True
            for tracker in trackers.values():
                tracker.prime(image, box)
        said = {name: tracker.track(image) if primed else np.zeros(4) for name, tracker in trackers.items()}
        if box is not None:
            truth.append(box)
            size.append((image.shape[1], image.shape[0]))
            for name in trackers:
                found[name].append(_box(f"box of tracker {name}, frame {at}", said[name]))
    labels, sizes = _table(truth, np.float32, 4), _table(size, np.int64, 2)
    return {name: Track(labels, _table(boxes, np.float32, 4), sizes) for name, boxes in found.items()}


def _box(name: str, value: np.ndarray) -> np.ndarray:
    """A copy of a box as float32; ValueError unless it is four finite numbers."""
    box = np.array(value, np.float32)
    if box.shape != (4,):
        raise ValueError(f"{name}: found shape {box.shape}, expected (4,): x, y, width, height")
    if not np.isfinite(box).all():
        raise ValueError(f"{name}: found {box.tolist()}, expected finite numbers")
    return box


def _table(rows: list[Any], dtype: Any, width: int) -> np.ndarray:
    """Rows as one array (n, width), also where there is none."""
    return np.array(rows, dtype).reshape(-1, width)


def pool(tracks: Sequence[Track]) -> Track:
    """The frames of one or more tracks as one: each frame counts the same, whatever its video's length."""
    return Track(*(np.concatenate(part) for part in zip(*tracks, strict=True)))


def perturbed(track: Track, seed: int = 0, amount: float = 0.4) -> Track:
    """The labels of a track, disturbed and called found: what one who is sloppy, but knows of the target, would score.

    amount  each box is scaled about its centre by 1 - amount/2 to 1 + amount/2, and shifted by at most amount/2 of its
            scaled width and height, all uniformly. (The original draws upwards only: larger, right, down.)
    """
    change = np.random.default_rng(seed).uniform(-amount / 2, amount / 2, (len(track.truth), 3))
    corner, extent = np.split(track.truth.astype(np.float64), 2, axis=1)
    scaled = (1 + change[:, :1]) * extent
    moved = corner + (extent - scaled) / 2 + change[:, 1:] * scaled
    return track._replace(found=np.concatenate([moved, scaled], axis=1).astype(np.float32))


def _present(boxes: np.ndarray) -> np.ndarray:
    """Whether boxes (..., 4) have an area, (...) bool."""
    return np.asarray(np.all(boxes[..., 2:] > 0, axis=-1))


def overlap(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """I / (A + B - I + 1e-5) of boxes (n, 4), areas in square pixels, (n,) float64; 0 where either is absent."""
    a, b = a.astype(np.float64), b.astype(np.float64)
    low, high = np.maximum(a[:, :2], b[:, :2]), np.minimum(a[:, :2] + a[:, 2:], b[:, :2] + b[:, 2:])
    common = (high - low).clip(0).prod(axis=1)
    union = a[:, 2:].prod(axis=1) + b[:, 2:].prod(axis=1) - common
    return np.where(_present(a) & _present(b), common / (union + 1e-5), 0.0)


def offset(truth: np.ndarray, found: np.ndarray) -> np.ndarray:
    """From the centres of truth to those of found, in pixels right and down: (n, 4) and (n, 4) -> (n, 2) float64."""
    centres = [boxes[:, :2].astype(np.float64) + boxes[:, 2:] / 2 for boxes in (truth, found)]
    return centres[1] - centres[0]


class Scores(NamedTuple):
    """The figures of one track. Shares are 0 to 1; NaN where there is nothing to divide by: see `undefined`."""

    frames: int  # labelled frames: the four counts add up to it
    true_positives: int  # target there, and found somewhere
    true_negatives: int  # target absent, and said so
    false_positives: int  # target absent, and found somewhere
    false_negatives: int  # target there, and said to be absent
    presence: float  # (TN + TP - FN - FP + 100) / 2, all in percent of the frames: that is TP + TN
    precision: float  # share of targets whose centre was found within 20 pixels, as published; see `centre`
    relative_precision: float  # ... within .2, x in image widths and y in image heights
    success: float  # mean of the success curve; .99 at most, since no overlap exceeds 1
    accuracy: float  # share of frames right: the centre found inside the target's box, or both absent
    overlap: float  # share of targets found with an overlap above .5
    centre: float  # share of targets whose centre was found within .1, x in image widths and y in image heights
    precision_curve: np.ndarray  # (51,) share of targets with distance < PIXELS
    relative_precision_curve: np.ndarray  # (1000,) ... with relative distance < RELATIVE
    success_curve: np.ndarray  # (100,) ... with overlap > OVERLAPS
    accuracy_curve: np.ndarray  # (1000,) share of frames right, where 2 |dx| / width and 2 |dy| / height <= HALVES

    @property
    def undefined(self) -> str:
        """Why some figures are NaN; empty where none is."""
        if not self.frames:
            return "no frame is labelled: no figure is defined"
        if not self.true_positives + self.false_negatives:
            return "no frame has a target: precision and success are undefined"
        return ""

    def as_dict(self) -> dict[str, Any]:
        """All figures and curves for JSON, None for NaN, and `undefined`."""
        values = {name: _plain(value) for name, value in self._asdict().items()}
        return {**values, "undefined": self.undefined}


def _plain(value: Any) -> Any:
    if isinstance(value, np.ndarray):
        return [_plain(one) for one in value.tolist()]
    return None if value != value else value


def score(track: Track) -> Scores:
    """The figures of a track. A target that was not found counts as a miss at every threshold."""
    there, said = _present(track.truth), _present(track.found)
    both, neither = there & said, ~there & ~said
    frames, targets = len(there), int(there.sum())
    away = offset(track.truth, track.found)[both]
    relative = away / track.size[both]
    halves = (2 * np.abs(away) / track.truth[both, 2:]).max(axis=1)  # 1: on the edge of the target's box
    overlaps = overlap(track.truth, track.found)[both]
    precision = _shares(_below(np.hypot(*away.T), PIXELS), targets)
    relative_precision = _shares(_below(np.hypot(*relative.T), RELATIVE), targets)
    success = _shares(len(overlaps) - _up_to(overlaps, OVERLAPS), targets)
    accuracy = _shares(_up_to(halves, HALVES) + neither.sum(), frames)
    right = int((both | neither).sum())
    return Scores(
        frames=frames,
        true_positives=int(both.sum()),
        true_negatives=int(neither.sum()),
        false_positives=int((said & ~there).sum()),
        false_negatives=int((there & ~said).sum()),
        presence=100 * right / frames if frames else np.nan,
        precision=float(precision[20]),
        relative_precision=float(relative_precision[200]),
        success=float(success.mean()),
        accuracy=float(accuracy[100]),
        overlap=float(_shares(np.array((overlaps > 0.5).sum()), targets)),
        centre=float(relative_precision[100]),
        precision_curve=precision,
        relative_precision_curve=relative_precision,
        success_curve=success,
        accuracy_curve=accuracy,
    )


def _below(values: np.ndarray, thresholds: np.ndarray) -> np.ndarray:
    """How many values are < each threshold."""
    return np.searchsorted(np.sort(values), thresholds, "left")


def _up_to(values: np.ndarray, thresholds: np.ndarray) -> np.ndarray:
    """How many values are <= each threshold."""
    return np.searchsorted(np.sort(values), thresholds, "right")


def _shares(counts: np.ndarray, total: int) -> np.ndarray:
    return counts / total if total else np.full(counts.shape, np.nan)


LEGEND = """\
success     share of targets whose box overlaps the labelled one by more than t (intersection / union): mean over t in 0..1
overlap .5  the same for t = .5
centre .1   share of targets whose centre was found within .1 of the frame's size
accuracy    share of frames right: the centre found inside the labelled box, or both say "absent"
found       targets found, wherever, of those there    absent: frames rightly called without a target, of those without
null keeps the first box, centre says the middle, perturbed truth is the label moved and scaled by up to 20 %"""


def text(scores: Mapping[str, Scores]) -> str:
    """A table of the quoted figures, a line a tracker; below it what they mean, and why some are missing."""
    width = max(map(len, ("tracker", *scores)))
    heads = ("success", "overlap .5", "centre .1", "accuracy", "found", "absent")
    lines = [" ".join([f"{'tracker':{width}}", *(f"{head:>11}" for head in heads)])]
    for name, one in scores.items():
        figures = (one.success, one.overlap, one.centre, one.accuracy)
        cells = ["-" if figure != figure else f"{figure:.3f}" for figure in figures]
        cells.append(_of(one.true_positives, one.false_negatives))
        cells.append(_of(one.true_negatives, one.false_positives))
        lines.append(" ".join([f"{name:{width}}", *(f"{cell:>11}" for cell in cells)]))
    why = dict.fromkeys(one.undefined for one in scores.values() if one.undefined)
    return "\n".join([*lines, *why, "", LEGEND])


def _of(right: int, wrong: int) -> str:
    return f"{right}/{right + wrong}" if right + wrong else "-"
