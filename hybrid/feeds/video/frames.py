"""A feed of frames: parallel streams over clips."""

from bisect import bisect_right
from collections.abc import Sequence
from itertools import accumulate
from typing import Any, NamedTuple

import numpy as np

from ... import check
from .clip import Clip, Frame


class FrameBatch(NamedTuple):
    """A frame of each of B streams. The arrays may be views of a clip's own memory, so they are read-only.

    image     (B, rows, columns, channels) uint8
    box       (B, 4) float32, see `Frame`; zeros without a label
    labelled  (B,) bool
    """

    image: np.ndarray
    box: np.ndarray
    labelled: np.ndarray


class Frames:
    """`steps` ticks of `streams` independent streams over one or more clips: feed[tick] -> FrameBatch.

    Every stream cycles through the clips; stream s of B starts at fraction s/B. A pure function of arguments and tick.
    """

    def __init__(self, clips: Sequence[Clip], steps: int, streams: int = 1):
        self.steps = check.whole("steps", steps, 0)
        self.streams = check.whole("streams", streams, 1)
        self.clips = list(clips)
        if not self.clips:
            raise ValueError("clips: found none, expected at least one")
        self.shape, self.rate = self.clips[0].shape, self.clips[0].rate
        for number, clip in enumerate(self.clips):
            if clip.shape != self.shape:
                raise ValueError(f"clips[{number}]: found shape {clip.shape}, expected {self.shape} as clips[0]")
        self._ends = list(accumulate(len(clip) for clip in self.clips))  # of every clip, in the sequence of all

    def __len__(self) -> int:
        return self.steps

    def __getitem__(self, tick: int) -> FrameBatch:
        if not 0 <= tick < self.steps:
            raise IndexError(f"tick: found {tick}, expected 0 to {self.steps - 1}")
        frames = [self._frame(tick, stream) for stream in range(self.streams)]
        image = frames[0].image[None] if len(frames) == 1 else np.stack([frame.image for frame in frames])
        box = np.zeros((len(frames), 4), np.float32)
        labelled = np.zeros(len(frames), bool)
        for stream, frame in enumerate(frames):
            if frame.box is not None:
                box[stream], labelled[stream] = frame.box, True
        return FrameBatch(image, box, labelled)

    def describe(self) -> dict[str, Any]:
        """Returns a JSON-compatible description. Equal descriptions give equal batches."""
        facts = [clip.describe() for clip in self.clips]
        return {"kind": "frames", "steps": self.steps, "streams": self.streams, "clips": facts}

    def _frame(self, tick: int, stream: int) -> Frame:
        place = (tick + stream * self._ends[-1] // self.streams) % self._ends[-1]
        clip = bisect_right(self._ends, place)
        return self.clips[clip][place - self._ends[clip - 1] if clip else place]
