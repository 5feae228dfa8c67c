"""Frames and labels as users give them: checked, and made into arrays that a slot copies."""

from collections.abc import Iterator
from typing import Any

import numpy as np

from .. import check
from .heads import Heads

Arrays = tuple[np.ndarray, np.ndarray | None]  # the image, as `FrameInput` has it, and what the readouts learn


class Inputs:
    """The inputs of a model: frames of one shape, one a stream, and labels where it has readouts.

    frame         (rows, columns, channels)
    readouts      or None: labels are left aside
    ignore_depth  whether the 4th channel is taken as 0
    """

    def __init__(
        self, frame: tuple[int, int, int], streams: int, readouts: Heads | None, *, ignore_depth: bool = False
    ):
        self.frame, self.streams, self.readouts = frame, streams, readouts
        self.ignore_depth = ignore_depth and frame[2] == 4

    def item(self, item: Any) -> Arrays:
        """Of an item of what `PVM.run` takes: a `FrameBatch`, a pair (frame, label), or a frame."""
        if hasattr(item, "labelled"):
            label = item.box if item.labelled.all() else None
            return self.pair(item.image, label if label is None or self.streams > 1 else label[0])
        if isinstance(item, tuple) and len(item) == 2:
            return self.pair(*item)
        return self.pair(item, None)

    def pair(self, frame: Any, label: Any) -> Arrays:
        """Of a frame and its label, as `PVM.step` takes them. Raises ValueError for what does not fit."""
        image = self._image(frame)
        if self.ignore_depth:
            image = image.copy()
            image[..., 3] = 0
        if label is None or not self.readouts:
            return image, None
        return image, self._heat([label] if self.streams == 1 else label)

    def _image(self, frame: Any) -> np.ndarray:
        """(B, rows, columns, channels)."""
        try:
            image = np.asarray(frame)
        except (ValueError, TypeError) as failure:
            raise ValueError(f"frame: found {type(frame).__name__} that is no array ({failure})") from None
        image = image[None] if image.ndim == 3 and self.streams == 1 else image
        expected = (self.streams, *self.frame)
        if image.shape != expected:
            shown = expected[1:] if self.streams == 1 else expected
            raise ValueError(
                f"frame: found shape {image.shape}, expected {shown}: {'' if self.streams == 1 else 'streams, '}rows, "
                f"columns, channels; {_remedy(image.shape, expected)}"
            )
        if image.dtype != np.uint8 and not (image.dtype.kind in "fb" and image.min() >= 0 and image.max() <= 1):
            found = f"numbers from {image.min()} to {image.max()}" if image.dtype.kind in "fiu" else "no numbers"
            raise ValueError(
                f"frame: found {found} ({image.dtype}), expected uint8, or floats from 0 to 1; "
                "frame.astype(np.uint8) for numbers to 255"
            )
        return image

    def _heat(self, labels: Any) -> np.ndarray:
        """What the readouts learn, (B, Y), of a label each stream."""
        assert self.readouts is not None
        if len(labels) != self.streams:
            raise ValueError(f"label: found {len(labels)} labels, expected {self.streams}, one for each stream")
        return np.stack([self.readouts.target(self._maps(label)) for label in labels])

    def _maps(self, label: Any) -> list[np.ndarray]:
        assert self.readouts is not None
        if isinstance(label, list):
            shapes = [np.shape(heat) for heat in label]
            if shapes != self.readouts.shapes:
                raise ValueError(f"label: found heatmaps {shapes}, expected {self.readouts.shapes}")
            for heat in label:
                check.finite("label", np.asarray(heat))
            return label
        box = check.array("label", np.asarray(label, np.float32), (4,), np.float32)
        check.finite("label", box)
        return self.readouts.heats(box, self.frame)


def items(frames: Any, first: int) -> Iterator[Any]:
    """The items from tick `first` on: of a feed those of its ticks, of any other iterable all that it gives.

    Raises ValueError for what is neither.
    """
    if hasattr(frames, "__getitem__") and hasattr(frames, "__len__"):
        if hasattr(frames, "streams"):
            return (frames[tick] for tick in range(first, len(frames)))
        if not hasattr(frames, "__iter__"):
            return (frames[number] for number in range(len(frames)))
    try:
        return iter(frames)
    except TypeError:
        raise ValueError(
            f"frames: found {type(frames).__name__}, expected a feed, or an iterable of frames or of (frame, label)"
        ) from None


def _remedy(found: tuple[int, ...], expected: tuple[int, ...]) -> str:
    """What to do with an array of this shape, in terms of NumPy or Pillow."""
    streams, rows, columns, channels = expected
    if streams > 1 and len(found) == 4 and found[1:] == expected[1:]:
        return f"give a frame for each of the {streams} streams"
    if found[-2:] == (rows, columns):
        return "put the channels last, with np.moveaxis or frame[..., None]"
    if found[-3:-1] == (rows, columns) and len(found) > 2 and found[-1] != channels:
        return f"give it {channels} channel{'s' * (channels > 1)}"
    return f"resize it: np.asarray(PIL.Image.fromarray(frame).resize(({columns}, {rows})))"
