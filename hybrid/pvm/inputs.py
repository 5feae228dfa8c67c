"""Frames and labels as users give them: checked, and made into what a slot takes."""

from collections.abc import Iterator
from typing import Any

import numpy as np

from .. import check
from .heads import Heads
from .slot import FrameInput


class Inputs:
    """What a model takes: frames of one shape for so many streams, and labels where it has readouts.

    frame     (rows, columns, channels)
    readouts  or None: labels are left aside
    """

    def __init__(self, frame: tuple[int, int, int], streams: int, readouts: Heads | None):
        self.frame, self.streams, self.readouts = frame, streams, readouts

    def shown(self, frame, label: Any, wanted: bool) -> FrameInput:
        """A frame and its label, as `PVM.step` takes them. Raises ValueError for what does not fit."""
        image = self._image(frame)
        if label is None or not self.readouts:
            return FrameInput(image, None, wanted)
        return FrameInput(image, self._heat([label] if self.streams == 1 else label), wanted)

    def item(self, item, wanted: bool) -> FrameInput:
        """An item of what `PVM.run` takes: a `FrameBatch`, a pair (frame, label), or a frame."""
        if hasattr(item, "labelled"):
            label = item.box if item.labelled.all() else None
            return self.shown(item.image, label if label is None or self.streams > 1 else label[0], wanted)
        if isinstance(item, tuple) and len(item) == 2:
            return self.shown(*item, wanted)
        return self.shown(item, None, wanted)

    def _image(self, frame) -> np.ndarray:
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

    def _heat(self, labels) -> np.ndarray:
        """What the readouts are to say, (B, Y), of a label each stream."""
        assert self.readouts is not None
        if len(labels) != self.streams:
            raise ValueError(f"label: found {len(labels)} labels, expected {self.streams}, one for each stream")
        return np.stack([self.readouts.target(self._maps(label)) for label in labels])

    def _maps(self, label) -> list[np.ndarray]:
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


def items(frames, first: int) -> Iterator[Any]:
    """What there is to see from tick `first` on: of a feed the items of its ticks, of any other iterable all that it gives.

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
    """What to do with an array of this shape, as NumPy or Pillow says it."""
    streams, rows, columns, channels = expected
    if streams > 1 and len(found) == 4 and found[1:] == expected[1:]:
        return f"give a frame for each of the {streams} streams"
    if found[-2:] == (rows, columns):
        return "put the channels last, with np.moveaxis or frame[..., None]"
    if found[-3:-1] == (rows, columns) and len(found) > 2 and found[-1] != channels:
        return f"give it {channels} channel{'s' * (channels > 1)}"
    return f"resize it: np.asarray(PIL.Image.fromarray(frame).resize(({columns}, {rows})))"
