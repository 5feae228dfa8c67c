"""Decoded frames kept in memory, within a limit for all clips together."""

from typing import Any

import numpy as np

from ... import check
from .clip import Clip, Frame, aspect_of, inside, read_only

MEMORY = 2**30  # bytes


class Memory:
    """How many bytes of decoded frames all clips together may keep.

    left  attribute: bytes that are free
    """

    def __init__(self, limit: int = MEMORY):
        self.left = check.whole("memory", limit, 0)

    def take(self, size: int) -> bool:
        """Take `size` bytes if so many are left; returns whether they were."""
        fits = size <= self.left
        self.left -= size * fits
        return fits


class Kept:
    """A clip whose frames are decoded once and then stay in memory; a `Clip`."""

    def __init__(self, clip: Clip):
        self.clip, self.shape, self.rate, self.aspect = clip, clip.shape, clip.rate, aspect_of(clip)
        self._image = np.empty((len(clip), *clip.shape), np.uint8)
        self._frames: list[Frame | None] = [None] * len(clip)

    def __len__(self) -> int:
        return len(self._frames)

    def __getitem__(self, number: int) -> Frame:
        inside(number, len(self))
        frame = self._frames[number]
        if frame is None:
            decoded = self.clip[number]
            self._image[number] = decoded.image
            frame = self._frames[number] = Frame(read_only(self._image[number]), decoded.box)
        return frame

    def describe(self) -> dict[str, Any]:
        """See `Clip`."""
        return self.clip.describe()


def keep(clip: Clip, memory: Memory) -> Clip:
    """The clip with its frames kept, where all of them fit; else the clip itself, which decodes a frame each time.

    To keep a part would not help: frames are asked for in order, again and again.
    """
    return Kept(clip) if memory.take(len(clip) * int(np.prod(clip.shape))) else clip
