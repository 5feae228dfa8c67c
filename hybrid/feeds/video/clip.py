"""The clip protocol: a sequence of frames of one shape, each with the box of its target if known.

Pillow resizes every picture, including video frames: its bicubic filter is integer arithmetic, so the bytes are the same on all
machines.
"""

import math
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple, Protocol

import numpy as np

from ... import check

Shape = tuple[int, int, int]
LABELS = ("labels.txt", "labels.csv", "groundtruth_rect.txt")  # names of a box file in a directory of images
MOST_NUMBERS = 2**31 - 1  # per frame, about 2 GB; larger frames are no video, and exceed an array


class Frame(NamedTuple):
    """A picture and the box of its target. The arrays may be views of the clip's own memory, so they are read-only.

    image  (rows, columns, channels) uint8
    box    (4,) float32: x, y, width, height in pixels of this image, x to the right, y down; width 0: labelled, but the target
           is absent; None: not labelled
    """

    image: np.ndarray
    box: np.ndarray | None


class Clip(Protocol):
    """A sequence of frames, all of one shape: clip[i] is a pure function of i.

    shape  (rows, columns, channels)
    rate   frames per second

    It may have an `aspect`, see `aspect_of`.
    """

    shape: Shape
    rate: float

    def __len__(self) -> int:
        """Returns the total number of frames."""

    def __getitem__(self, number: int) -> Frame:
        """Returns frame `number`; IndexError outside [0, len), ValueError or OSError if it cannot be decoded."""

    def describe(self) -> dict[str, Any]:
        """Returns a JSON-compatible description of what the frames depend on: kind, arguments and the sha256 of the data.

        Clips with equal descriptions give equal frames.
        """


class Pictures:
    """A clip of pictures of any size, with an optional box file; a subclass defines `_picture`."""

    kind: str
    shape: Shape
    _data: str  # the sha256
    _boxes: np.ndarray | None  # in pixels of the original

    def __len__(self) -> int:
        raise NotImplementedError

    def _picture(self, number: int) -> Any:
        """Returns a frame as a Pillow image in the size of the original."""
        raise NotImplementedError

    def __getitem__(self, number: int) -> Frame:
        inside(number, len(self))
        picture = self._picture(number)
        box = None if self._boxes is None else placed(self._boxes[number], picture.size, self.shape)
        return Frame(resized(picture, self.shape), box)

    def describe(self) -> dict[str, Any]:
        """Returns the description; see `Clip`."""
        facts = {"kind": self.kind, "data": self._data, "frames": len(self), "labelled": self._boxes is not None}
        return facts | {"shape": list(self.shape), "crop": False}  # compatible with earlier runs


def aspect_of(clip: Clip) -> float:
    """Returns width / height of the original frames, before the resize to `shape`: `aspect` if set, or else that of `shape`."""
    return float(getattr(clip, "aspect", clip.shape[1] / clip.shape[0]))


def inside(number: int, count: int) -> None:
    """Raises IndexError unless a clip of `count` frames has frame `number`."""
    if not 0 <= number < count:
        raise IndexError(f"frame: found {number}, expected 0 to {count - 1}")


def read_only(array: np.ndarray) -> np.ndarray:
    """Marks the array read-only and returns it."""
    array.flags.writeable = False
    return array


def check_shape(shape: Any) -> Shape:
    """Returns `shape`; ValueError unless it is (rows, columns, channels), with 1 (grey) or 3 (RGB) channels, and not huge."""
    if not isinstance(shape, Sequence) or len(shape) != 3:
        raise ValueError(f"shape: found {shape!r}, expected (rows, columns, channels)")
    rows, columns = (check.whole(name, size, 1) for name, size in zip(("rows", "columns"), shape[:2], strict=True))
    if shape[2] not in (1, 3):
        raise ValueError(f"channels: found {shape[2]!r}, expected 1 (grey) or 3 (red, green, blue)")
    if rows * columns * shape[2] > MOST_NUMBERS:
        raise ValueError(
            f"shape: found frames of {rows:,} x {columns:,}, expected at most {MOST_NUMBERS:,} numbers; make them smaller"
        )
    return rows, columns, int(shape[2])


def resized(picture: Any, shape: Shape) -> np.ndarray:
    """Returns a Pillow image resized to (rows, columns, channels) uint8 by the bicubic filter; alpha is dropped."""
    from PIL import Image

    picture = _plain(picture)
    if picture.size != (shape[1], shape[0]):
        picture = picture.resize((shape[1], shape[0]), Image.Resampling.BICUBIC)
    pixels = np.array(picture.convert("L" if shape[2] == 1 else "RGB"), np.uint8)
    return read_only(pixels.reshape(shape))


def _plain(picture: Any) -> Any:
    """Converts a picture to a mode whose values can be averaged: grey or RGB, 8 bits."""
    from PIL import Image

    if picture.mode.startswith(("I", "F")):  # 16 bits, which Pillow would clip
        return Image.fromarray((np.clip(np.array(picture, np.float64), 0, 65535) / 257).round().astype(np.uint8))
    if picture.mode in ("RGB", "L"):
        return picture
    if "transparency" in picture.info:
        picture = picture.convert("RGBA")  # avoids a warning of Pillow
    return picture.convert("L" if picture.mode in ("1", "LA") else "RGB")


class Labels(NamedTuple):
    """A file with the target's box in each frame: its name, for messages, and its bytes."""

    name: str
    text: bytes


def read_boxes(labels: Labels, sizes: Sequence[tuple[int, int]]) -> np.ndarray:
    """Returns the boxes of a file with a line x,y,w,h for each frame, in pixels of the original.

    sizes  width and height of every frame

    Returns (frames, 4) float64, zeros for an absent target: an empty line, or a width or height of 0. A box may cross an edge.
    Numbers are separated by commas, semicolons, tabs or spaces. Raises ValueError, with file and line, for a wrong number of
    lines, a malformed number, and a box entirely outside its frame.
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
    return np.array(boxes, np.float64).reshape(len(boxes), 4)


def _box(name: str, at: int, line: str, size: tuple[int, int]) -> tuple[float, ...]:
    fields = re.split(r"\s*[,;\s]\s*", line.strip()) if line.strip() else ["0"] * 4
    try:
        x, y, width, height = map(float, fields)
    except ValueError:
        x = y = width = height = math.nan
    if not all(map(math.isfinite, (x, y, width, height))):
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
    """Converts a box of an original of this width and height to pixels of the frame, (4,) float32; zeros if not visible."""
    scale = np.array([shape[1] / size[0], shape[0] / size[1]])
    limit = np.array([shape[1], shape[0]])
    low = np.clip(box[:2] * scale, 0, limit)
    extent = np.clip((box[:2] + box[2:]) * scale, 0, limit) - low
    moved = np.concatenate([low, extent]).astype(np.float32)
    return read_only(moved if (moved[2:] > 0).all() else np.zeros(4, np.float32))


def labels_beside(path: Path) -> Path | None:
    """Returns the box file of a video, which has the video's name with the suffix .txt or .csv; None if missing."""
    name = only_labels(path, [path.stem + suffix for suffix in (".txt", ".csv") if path.with_suffix(suffix).exists()])
    return path.with_name(name) if name else None


def only_labels(path: Path | str, texts: Sequence[str]) -> str | None:
    """Returns the name of the box file of a clip, None if there is none; ValueError for several."""
    if len(texts) > 1:
        raise ValueError(f"{path}: found both {texts[0]} and {texts[1]}, expected one file of labels")
    return texts[0] if texts else None
