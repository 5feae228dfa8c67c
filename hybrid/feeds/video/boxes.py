"""Files of boxes, which say for each frame where its target is: reading them, and moving a box into a resized frame."""

import math
import re
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np

from .clip import Shape, read_only

LABELS = ("labels.txt", "labels.csv", "groundtruth_rect.txt")  # names of such a file in a directory of images


class Labels(NamedTuple):
    """A file of boxes.

    name  of the file, for messages
    text  its bytes
    """

    name: str
    text: bytes


def read_boxes(labels: Labels, sizes: Sequence[tuple[int, int]]) -> np.ndarray:
    """The boxes in a file that has a line x,y,w,h for each frame, in pixels of the original.

    sizes  width and height of every frame

    Returns (frames, 4) float64, zeros where the target is absent: where the line is empty, or width or height is 0. A box may
    reach over an edge. Numbers are separated by commas, semicolons, tabs or spaces. Raises ValueError, with file and line,
    for a wrong number of lines, for what is no number, and for a box wholly outside its frame.
    """
    try:
        lines = labels.text.decode("utf-8-sig").splitlines()
    except UnicodeDecodeError as error:
        raise ValueError(f"{labels.name}: not UTF-8 ({error.reason}); expected lines x,y,w,h") from None
    while len(lines) > len(sizes) and not lines[-1].strip():
        lines.pop()
    if len(lines) != len(sizes):
        raise ValueError(f"{labels.name}: {len(lines)} lines, expected {len(sizes)}, a line x,y,w,h for each frame")
    boxes = [_box(labels.name, at, line, size) for at, (line, size) in enumerate(zip(lines, sizes, strict=True), 1)]
    return np.array(boxes, np.float64).reshape(-1, 4)


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


def placed(box: np.ndarray, size: tuple[int, int], shape: Shape) -> np.ndarray:
    """A box of an original of this width and height in pixels of the frame, which shows all of it in `shape`.

    Returns (4,) float32, zeros where nothing of the box is seen.
    """
    scale = np.array([shape[1] / size[0], shape[0] / size[1]])
    limit = np.array([shape[1], shape[0]])
    low = np.clip(box[:2] * scale, 0, limit)
    extent = np.clip((box[:2] + box[2:]) * scale, 0, limit) - low
    moved = np.concatenate([low, extent]).astype(np.float32)
    return read_only(moved if (moved[2:] > 0).all() else np.zeros(4, np.float32))


def labels_beside(path: Path) -> Path | None:
    """The file of boxes of a video, which has the video's name with the suffix .txt or .csv; None where there is none."""
    texts = [file for file in (path.with_suffix(".txt"), path.with_suffix(".csv")) if file.exists()]
    if len(texts) > 1:
        raise ValueError(f"{path}: beside it are both {texts[0].name} and {texts[1].name}; expected one file of labels")
    return texts[0] if texts else None
