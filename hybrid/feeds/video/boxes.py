"""Files of boxes, one a frame: where they stand, how they are read, and where a box comes to lie in a resized frame."""

import math
import re
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np

from .clip import Shape, read_only
from .resize import Region

LABELS = ("labels.txt", "labels.csv", "groundtruth_rect.txt")


class Labels(NamedTuple):
    """A file of boxes: `name` for messages, `text` as read."""

    name: str
    text: bytes


def read_boxes(labels: Labels, sizes: Sequence[tuple[int, int]]) -> np.ndarray:
    """The boxes of a file of lines x,y,w,h, one a frame, in pixels of the original: (frames, 4) float64, zeros if absent.

    sizes  width, height of every frame

    An empty line, or a width or height of 0, says that the target is absent; a box may reach over an edge. Commas, tabs and
    spaces separate. Raises ValueError, with file and line, for a wrong count, for what is no number, and for a box wholly
    outside its frame.
    """
    try:
        lines = labels.text.decode("utf-8-sig").splitlines()
    except UnicodeDecodeError as error:
        raise ValueError(f"{labels.name}: not UTF-8 ({error.reason}); expected lines x,y,w,h") from None
    while len(lines) > len(sizes) and not lines[-1].strip():
        lines.pop()
    if len(lines) != len(sizes):
        raise ValueError(f"{labels.name}: {len(lines)} lines, expected {len(sizes)}, a line x,y,w,h for each frame")
    found = [_box(labels.name, at, line, size) for at, (line, size) in enumerate(zip(lines, sizes, strict=True), 1)]
    return np.array(found, np.float64).reshape(-1, 4)


def _box(name: str, at: int, line: str, size: tuple[int, int]) -> tuple[float, ...]:
    fields = re.split(r"\s*[,;\s]\s*", line.strip()) if line.strip() else ["0"] * 4
    try:
        x, y, width, height = map(float, fields)
    except ValueError:
        x = math.nan
    if math.isnan(x) or not all(map(math.isfinite, (x, y, width, height))):
        raise ValueError(f"{name}, line {at}: found {line.strip()!r}, expected four numbers x,y,w,h, or an empty line")
    if width < 0 or height < 0:
        raise ValueError(f"{name}, line {at}: the box is {width:g} by {height:g}, expected a size of at least 0")
    if not width or not height:
        return 0.0, 0.0, 0.0, 0.0
    if x >= size[0] or y >= size[1] or x + width <= 0 or y + height <= 0:
        raise ValueError(
            f"{name}, line {at}: the box {line.strip()} lies outside its frame of {size[0]} by {size[1]} pixels;"
            " expected pixels of the original, or an empty line where the target is absent"
        )
    return x, y, width, height


def placed(box: np.ndarray, cut: Region, shape: Shape) -> np.ndarray:
    """A box of the original, as (4,) float32 in pixels of the region resized to `shape`; zeros if nothing of it is seen."""
    left, top, right, bottom = cut
    scale = np.array([shape[1] / (right - left), shape[0] / (bottom - top)])
    limit = np.array([shape[1], shape[0]])
    low = np.clip((box[:2] - (left, top)) * scale, 0, limit)
    size = np.clip((box[:2] + box[2:] - (left, top)) * scale, 0, limit) - low
    found = np.concatenate([low, size]).astype(np.float32)
    return read_only(found if (found[2:] > 0).all() else np.zeros(4, np.float32))


def labels_beside(path: Path) -> Path | None:
    """The file of boxes beside a video: its name with .txt or .csv for the suffix; None where there is none."""
    found = [file for file in (path.with_suffix(".txt"), path.with_suffix(".csv")) if file.exists()]
    if len(found) > 1:
        raise ValueError(f"{path}: beside it are both {found[0].name} and {found[1].name}; expected one file of labels")
    return found[0] if found else None
