"""The tracking benchmark: boxes of trackers compared with labels, scored on overlap, distance and presence.

Its measures are those of braincorp/PVM (PVM_tools/benchmark.py) that do not depend on the number of pixels of a frame. They
follow Wu, Lim and Yang, Online object tracking: a benchmark (CVPR 2013). Boxes are those of `hybrid.pvm.heads`; one without
area is absent. As there, a tracker starts with the first target of a clip: all count as "absent" before it.
"""

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np

ARENA = (96, 96)  # rows and columns of the frame in which boxes are compared, as in the original
CENTRE = 0.2  # the size of the box of "centre", as a fraction of the frame's
OVERLAPS = np.linspace(0, 1, 100)  # thresholds of the success curve


class Scores(NamedTuple):
    """The scores of a tracker. Fractions are 0 to 1; NaN for an empty denominator: see `undefined`."""

    frames: int  # labelled frames: the sum of the four counts
    true_positives: int  # target present, and any box reported
    true_negatives: int  # target absent, and reported absent
    false_positives: int  # target absent, and any box reported
    false_negatives: int  # target present, and reported absent
    success: float  # mean over 100 thresholds of the fraction of targets with a larger overlap; .99 at most
    overlap: float  # fraction of targets found with an overlap above .5
    centre: float  # fraction of targets whose centre was found within .1 of the frame's size
    accuracy: float  # fraction of correct frames: the centre found inside the target's box, or both absent

    @property
    def undefined(self) -> str:
        """The reason why some figures are NaN; empty if none is."""
        if not self.frames:
            return "no frame is labelled: no figure is defined"
        if not self.true_positives + self.false_negatives:
            return "no frame has a target: precision and success are undefined"
        return ""

    def as_dict(self) -> dict[str, Any]:
        """Returns all figures for JSON, None for NaN, and `undefined`."""
        figures = {name: None if value != value else value for name, value in self._asdict().items()}
        return {**figures, "undefined": self.undefined}


def begun(truth: np.ndarray, trackers: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
    """Returns the boxes (n, 4) of trackers and two baselines in the labelled frames of a clip; absent before the first target.

    truth     (n, 4) float32, the labels; in `ARENA`, as all boxes
    trackers  of each by name (n, 4)

    The baselines: "null" keeps the first target's box, "centre" reports the middle of the frame.
    """
    there = _present(truth)
    first = int(there.argmax()) if there.any() else len(truth)
    arena = np.array(ARENA[::-1])
    middle = np.concatenate([(1 - CENTRE) / 2 * arena, CENTRE * arena])
    boxes = {
        **trackers,
        "null": np.repeat(truth[first : first + 1], len(truth), 0),
        "centre": np.tile(middle, (len(truth), 1)),
    }
    before = np.arange(len(truth)) < first
    return {
        name: np.where(before[:, None], 0, one if len(one) else np.zeros((len(truth), 4))).astype(np.float32)
        for name, one in boxes.items()
    }


def score(truth: np.ndarray, found: np.ndarray) -> Scores:
    """Scores boxes (n, 4) against the labels. A target that was not found counts as missed at every threshold."""
    there, present = _present(truth), _present(found)
    both, neither = there & present, ~there & ~present
    frames, targets = len(there), int(there.sum())
    centres = [boxes[:, :2].astype(np.float64) + boxes[:, 2:] / 2 for boxes in (truth, found)]
    away = (centres[1] - centres[0])[both]  # pixels right and down
    halves = (2 * np.abs(away) / truth[both, 2:]).max(axis=1)  # 1: on the edge of the target's box
    overlaps = overlap(truth, found)[both]
    return Scores(
        frames=frames,
        true_positives=int(both.sum()),
        true_negatives=int(neither.sum()),
        false_positives=int((present & ~there).sum()),
        false_negatives=int((there & ~present).sum()),
        success=_share((overlaps[:, None] > OVERLAPS).sum(axis=0), targets),
        overlap=_share((overlaps > 0.5).sum(), targets),
        centre=_share((np.hypot(*(away / ARENA[::-1]).T) < 0.1).sum(), targets),
        accuracy=_share((halves <= 1).sum() + neither.sum(), frames),
    )


def overlap(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Returns I / (A + B - I + 1e-5) of boxes (n, 4), areas in square pixels, (n,) float64; 0 if either is absent."""
    a, b = a.astype(np.float64), b.astype(np.float64)
    low, high = np.maximum(a[:, :2], b[:, :2]), np.minimum(a[:, :2] + a[:, 2:], b[:, :2] + b[:, 2:])
    common = (high - low).clip(0).prod(axis=1)
    union = a[:, 2:].prod(axis=1) + b[:, 2:].prod(axis=1) - common
    return np.where(_present(a) & _present(b), common / (union + 1e-5), 0.0)


def _present(boxes: np.ndarray) -> np.ndarray:
    """Returns a mask (...) bool of the boxes (..., 4) with an area."""
    return np.asarray(np.all(boxes[..., 2:] > 0, axis=-1))


def _share(counts: np.ndarray | np.integer, total: int) -> float:
    return float(np.mean(counts / total)) if total else np.nan


LEGEND = """\
success     share of targets whose box overlaps the labelled one by more than t (intersection / union): mean over t in 0..1
overlap .5  the same for t = .5
centre .1   share of targets whose centre was found within .1 of the frame's size
accuracy    share of frames right: the centre found inside the labelled box, or both say "absent"
found       targets found, wherever, of those there    absent: frames rightly called without a target, of those without
null keeps the first box, centre says the middle of the frame"""


def text(scores: Mapping[str, Scores]) -> str:
    """Returns a table of the figures, one line per tracker; below it their meanings, and reasons for missing ones."""
    width = max(map(len, ("tracker", *scores)))
    heads = ("success", "overlap .5", "centre .1", "accuracy", "found", "absent")
    lines = [" ".join([f"{'tracker':{width}}", *(f"{head:>11}" for head in heads)])]
    for name, one in scores.items():
        figures = (one.success, one.overlap, one.centre, one.accuracy)
        cells = ["-" if figure != figure else f"{figure:.3f}" for figure in figures]
        pairs = (one.true_positives, one.false_negatives), (one.true_negatives, one.false_positives)
        cells += [f"{right}/{right + wrong}" if right + wrong else "-" for right, wrong in pairs]
        lines.append(" ".join([f"{name:{width}}", *(f"{cell:>11}" for cell in cells)]))
    why = dict.fromkeys(one.undefined for one in scores.values() if one.undefined)
    return "\n".join([*lines, *why, "", LEGEND])
