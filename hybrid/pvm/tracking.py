"""The tracking benchmark: trackers follow labelled videos, and are scored on overlap, distance and presence.

Its measures are those of braincorp/PVM (PVM_tools/benchmark.py), after Wu, Lim and Yang, Online object tracking: a
benchmark (CVPR 2013). The table quotes those that do not depend on how many pixels a frame has. Boxes are those of
`hybrid.pvm.heads`; one without area is absent.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple, Protocol

import numpy as np

OVERLAPS = np.linspace(0, 1, 100)  # thresholds of the success curve


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
    success: float  # mean over 100 thresholds of the share of targets with a larger overlap; .99 at most
    overlap: float  # share of targets found with an overlap above .5
    centre: float  # share of targets whose centre was found within .1, x in image widths and y in image heights
    accuracy: float  # share of frames right: the centre found inside the target's box, or both absent

    @property
    def undefined(self) -> str:
        """Why some figures are NaN; empty where none is."""
        if not self.frames:
            return "no frame is labelled: no figure is defined"
        if not self.true_positives + self.false_negatives:
            return "no frame has a target: precision and success are undefined"
        return ""

    def as_dict(self) -> dict[str, Any]:
        """All figures for JSON, None for NaN, and `undefined`."""
        figures = {name: None if value != value else value for name, value in self._asdict().items()}
        return {**figures, "undefined": self.undefined}


def score(track: Track) -> Scores:
    """The figures of a track. A target that was not found counts as missed at every threshold."""
    there, said = _present(track.truth), _present(track.found)
    both, neither = there & said, ~there & ~said
    frames, targets = len(there), int(there.sum())
    away = offset(track.truth, track.found)[both]
    halves = (2 * np.abs(away) / track.truth[both, 2:]).max(axis=1)  # 1: on the edge of the target's box
    overlaps = overlap(track.truth, track.found)[both]
    return Scores(
        frames=frames,
        true_positives=int(both.sum()),
        true_negatives=int(neither.sum()),
        false_positives=int((said & ~there).sum()),
        false_negatives=int((there & ~said).sum()),
        success=_share((overlaps[:, None] > OVERLAPS).sum(axis=0), targets),
        overlap=_share((overlaps > 0.5).sum(), targets),
        centre=_share((np.hypot(*(away / track.size[both]).T) < 0.1).sum(), targets),
        accuracy=_share((halves <= 1).sum() + neither.sum(), frames),
    )


def _share(counts: np.ndarray | np.integer, total: int) -> float:
    """The mean of counts as shares of a total."""
    return float(np.mean(counts / total)) if total else np.nan


LEGEND = """\
success     share of targets whose box overlaps the labelled one by more than t (intersection / union): mean over t in 0..1
overlap .5  the same for t = .5
centre .1   share of targets whose centre was found within .1 of the frame's size
accuracy    share of frames right: the centre found inside the labelled box, or both say "absent"
found       targets found, wherever, of those there    absent: frames rightly called without a target, of those without
null keeps the first box, centre says the middle of the frame"""


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
