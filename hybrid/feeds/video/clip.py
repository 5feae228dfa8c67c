"""What a clip is: a sequence of frames, each with the place of its target where that is known."""

from collections.abc import Sequence
from typing import Any, NamedTuple, Protocol

import numpy as np

from ... import check

Shape = tuple[int, int, int]
MOST_NUMBERS = 2**31 - 1  # of a frame, some 2 GB; frames of many more are no video, and more than an array can hold


class Frame(NamedTuple):
    """One picture and where its target is. The arrays may be views of the clip's own, so they are read-only.

    image  (rows, columns, channels) uint8
    box    (4,) float32: x, y, width, height in pixels of this image, x to the right, y down; width 0: labelled, but the
           target is absent; None: not labelled
    """

    image: np.ndarray
    box: np.ndarray | None


class Clip(Protocol):
    """One sequence of frames, all of one shape: clip[i] is a pure function of i.

    shape  (rows, columns, channels)
    rate   frames per second

    It may have an `aspect`, see `aspect_of`.
    """

    shape: Shape
    rate: float

    def __len__(self) -> int:
        """Frames in total."""

    def __getitem__(self, number: int) -> Frame:
        """Frame `number`; IndexError outside [0, len), ValueError or OSError where it cannot be decoded."""

    def describe(self) -> dict[str, Any]:
        """What the frames depend on, as JSON can hold it: kind, arguments and the sha256 of the data.

        Clips with equal descriptions give equal frames.
        """


class Options(NamedTuple):
    """How a clip is to be opened; a kind of clip takes what concerns it.

    shape   (rows, columns, channels) of the frames
    labels  read the boxes where there are any
    length  how many frames a clip has that could have any number
    """

    shape: Shape
    labels: bool = True
    length: int = 1000


def aspect_of(clip: Clip) -> float:
    """Width / height of what the frames show, before they were stretched to `shape`: its `aspect`, else that of `shape`."""
    return float(getattr(clip, "aspect", clip.shape[1] / clip.shape[0]))


def whole_number(kind: str, detail: str) -> int:
    """The number after the colon in the name of a clip, as in "synthetic:1"; 0 where there is none.

    Raises ValueError for anything else.
    """
    if detail and not (detail.isascii() and detail.isdigit()):
        raise ValueError(f"{kind}:{detail}: expected a whole number after the colon, as in {kind}:1")
    return int(detail or 0)


def inside(number: int, count: int) -> None:
    """IndexError unless a clip of `count` frames has frame `number`."""
    if not 0 <= number < count:
        raise IndexError(f"frame: found {number}, expected 0 to {count - 1}")


def read_only(array: np.ndarray) -> np.ndarray:
    """The array itself, marked as one that nobody writes to."""
    array.flags.writeable = False
    return array


def check_shape(shape: Any) -> Shape:
    """`shape` itself; ValueError unless it is (rows, columns, channels), with 1 channel (grey) or 3 (RGB), and not immense."""
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
