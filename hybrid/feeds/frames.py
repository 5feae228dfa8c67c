"""Frames of video as a feed: what a clip is, decoded frames kept in memory, and streams that read clips side by side."""

from bisect import bisect_right
from collections.abc import Sequence, Sized
from itertools import accumulate
from pathlib import Path
from typing import Any, NamedTuple, Protocol

import numpy as np

from .. import check

MEMORY = 2**30
Shape = tuple[int, int, int]


class Frame(NamedTuple):
    """One picture and where its target is. The arrays may be views of the clip's own, so they are read-only.

    image  (rows, columns, channels) uint8
    box    (4,) float32: x, y, width, height in pixels of this image, x to the right, y down; width 0: labelled, but the
           target is absent; None: not labelled
    """

    image: np.ndarray
    box: np.ndarray | None


class Live(Protocol):
    """Frames as they come, all of one shape, in order: clip[i] is asked for i, i + 1, ... and has no length.

    shape  (rows, columns, channels)
    rate   frames per second
    """

    shape: Shape
    rate: float

    def __getitem__(self, number: int) -> Frame:
        """Frame `number`; ValueError unless it is the last one given, or the one after it."""

    def describe(self) -> dict[str, Any]:
        """Facts that JSON can say."""


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
        """Facts that JSON can say: kind, arguments and the sha256 of the data. Equal facts give equal frames."""


class FrameBatch(NamedTuple):
    """A frame of each of B streams. The arrays may be views of a clip's own, so they are read-only.

    image     (B, rows, columns, channels) uint8
    box       (B, 4) float32, see `Frame`; zeros where there is no label
    labelled  (B,) bool
    """

    image: np.ndarray
    box: np.ndarray
    labelled: np.ndarray


class Frames:
    """`steps` ticks of `streams` independent streams over one or more clips: feed[tick] -> FrameBatch.

    Every stream reads the clips one after another, again and again; stream s of B starts s/B of the way in. A pure
    function of arguments and tick, but for a live clip, which stands alone with one stream, asked in the order of ticks.
    """

    def __init__(self, clips: Sequence[Clip | Live], steps: int, streams: int = 1):
        self.steps = check.whole("steps", steps, 0)
        self.streams = check.whole("streams", streams, 1)
        self.clips = list(clips)
        if not self.clips:
            raise ValueError("clips: found none, expected at least one")
        for number, clip in enumerate(self.clips):
            if clip.shape != self.clips[0].shape:
                raise ValueError(
                    f"clips[{number}]: found shape {clip.shape}, expected {self.clips[0].shape} as clips[0]"
                )
        self.shape, self.rate = self.clips[0].shape, self.clips[0].rate
        self._ends = self._lengths()

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
        """Facts that JSON can say. Equal facts give equal batches."""
        facts = [clip.describe() for clip in self.clips]
        return {"kind": "frames", "steps": self.steps, "streams": self.streams, "clips": facts}

    def _lengths(self) -> list[int]:
        """Where every clip ends in the sequence of all; nothing for a live clip."""
        if all(isinstance(clip, Sized) for clip in self.clips):
            return list(accumulate(len(clip) for clip in self.clips if isinstance(clip, Sized)))
        if len(self.clips) > 1 or self.streams > 1:
            raise ValueError(
                f"clips: found {len(self.clips)} with a live one for {self.streams} streams;"
                " a live clip cannot be in two places, expected it alone with streams=1"
            )
        return []

    def _frame(self, tick: int, stream: int) -> Frame:
        if not self._ends:
            return self.clips[0][tick]
        place = (tick + stream * self._ends[-1] // self.streams) % self._ends[-1]
        clip = bisect_right(self._ends, place)
        return self.clips[clip][place - self._ends[clip - 1] if clip else place]


class Memory:
    """How many bytes of decoded frames may be kept, by all clips together."""

    def __init__(self, limit: int = MEMORY):
        self.left = check.whole("memory", limit, 0)

    def take(self, size: int) -> bool:
        """Whether `size` bytes are left; they are taken then."""
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


def aspect_of(clip: Clip | Live) -> float:
    """Width / height of what its frames show, before they were stretched to `shape`; that of `shape` where it does not say."""
    return getattr(clip, "aspect", clip.shape[1] / clip.shape[0])


def keep(clip: Clip, memory: Memory) -> Clip:
    """The clip with its frames kept, where all of them fit; else the clip, which decodes every frame each time.

    A part would not help: frames are asked for in order, again and again.
    """
    return Kept(clip) if memory.take(len(clip) * int(np.prod(clip.shape))) else clip


def inside(number: int, count: int) -> None:
    """IndexError unless a clip of `count` frames has frame `number`."""
    if not 0 <= number < count:
        raise IndexError(f"frame: found {number}, expected 0 to {count - 1}")


def read_only(array: np.ndarray) -> np.ndarray:
    """The array itself, which nobody writes to from now on."""
    array.flags.writeable = False
    return array


def check_shape(shape) -> Shape:
    """`shape` itself; ValueError unless it is (rows, columns, channels), with 1 channel (grey) or 3 (RGB)."""
    if not isinstance(shape, Sequence) or len(shape) != 3:
        raise ValueError(f"shape: found {shape!r}, expected (rows, columns, channels)")
    rows, columns = (check.whole(name, size, 1) for name, size in zip(("rows", "columns"), shape[:2], strict=True))
    if shape[2] not in (1, 3):
        raise ValueError(f"channels: found {shape[2]!r}, expected 1 (grey) or 3 (red, green, blue)")
    return rows, columns, int(shape[2])


def open_clips(
    source: str, shape: Shape, *, labels=True, crop=False, memory: int = MEMORY, length: int = 1000
) -> Sequence[Clip | Live]:
    """The clips that a text names, with frames of `shape`.

    source  "synthetic" or "synthetic:SEED"; "camera" or "camera:1"; a video file; a directory of images, or of videos and
            zips; a zip of images
    labels  read the boxes where there are any (see `video.Video`, `images.directory`, `images.zipped`)
    crop    cut to the aspect of `shape` around the centre; else stretch
    memory  bytes of decoded frames to keep
    length  frames of the synthetic scene

    Raises ValueError or OSError, naming the file, for what is missing, empty, of an unknown kind or cannot be decoded.
    """
    shape = check_shape(shape)
    kind, _, detail = source.partition(":")
    if kind == "camera":
        from .video import Camera

        return [Camera(_number("camera", detail), shape, crop=crop)]
    room = Memory(memory)
    if kind == "synthetic":
        from .scene import Scene

        return [keep(Scene(shape, length, seed=_number("synthetic", detail)), room)]
    return [keep(_open(path, shape, labels, crop), room) for path in _files(Path(source))]


def _number(kind: str, detail: str) -> int:
    if detail and not (detail.isascii() and detail.isdigit()):
        raise ValueError(f"{kind}:{detail}: expected a whole number after the colon, as in {kind}:1")
    return int(detail or 0)


def _files(path: Path) -> list[Path]:
    """The path itself, or, of a directory without images, the videos and zips in it."""
    from . import images, video

    if not path.exists():
        raise FileNotFoundError(
            f"{path}: there is no such file or directory; expected a video, a directory of images or of videos, a zip of"
            ' images, "synthetic" or "camera"'
        )
    if not path.is_dir():
        return [path]
    found = images.natural(file for file in path.iterdir() if file.is_file() and not file.name.startswith("."))
    clips = [file for file in found if file.suffix.lower() in (*video.SUFFIXES, ".zip")]
    pictures = [file for file in found if file.suffix.lower() in images.SUFFIXES]
    if clips and pictures:
        raise ValueError(f"{path}: holds images ({pictures[0].name}) and clips ({clips[0].name}); expected one kind")
    if not clips and not pictures:
        raise ValueError(
            f"{path}: no images and no videos in it; expected files that end in"
            f" {', '.join(images.SUFFIXES)}, or .mp4, .avi, .mkv, ..., or .zip"
        )
    return clips or [path]


def _open(path: Path, shape: Shape, labels: bool, crop: bool) -> Clip:
    from . import images, video

    suffix = path.suffix.lower()
    if path.is_dir():
        return images.directory(path, shape, labels=labels, crop=crop)
    if suffix == ".zip":
        return images.zipped(path, shape, labels=labels, crop=crop)
    if suffix in video.SUFFIXES:
        return video.Video(path, shape, labels=video.labels_beside(path) if labels else None, crop=crop)
    if suffix in images.SUFFIXES:
        raise ValueError(f"{path}: a single image; give the directory that holds the images, {path.parent}")
    known = ", ".join((*video.SUFFIXES, ".zip"))
    raise ValueError(f"{path}: found a file that ends in {suffix!r}, expected one of {known}, or a directory")
