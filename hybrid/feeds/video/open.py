"""Clips by name: the one module that knows every kind of clip."""

from collections.abc import Sequence
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np

from ... import check
from ...settings import Registry
from .clip import Clip, Frame, Options, Shape, aspect_of, check_shape, inside, read_only
from .clips import images

# Decoded frames kept in memory, within a limit for all clips together.

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


KINDS = Registry("hybrid.feeds.video.clips", "hybrid.clips", "clip")


def open_clips(
    source: str, shape: Shape, *, labels: bool = True, memory: int = MEMORY, length: int = 1000
) -> Sequence[Clip]:
    """The clips that a text names, with frames of `shape`.

    source  "synthetic" or "synthetic:SEED"; a video file; a directory of images, or of videos and
            zips; a zip of images
    labels  read the boxes where there are any, see hybrid/feeds/video/clip.py
    memory  bytes of decoded frames to keep
    length  frames of the synthetic scene

    Raises ValueError or OSError, naming the file, for what is missing, empty, of an unknown kind or cannot be decoded.
    """
    options = Options(check_shape(shape), labels, length)
    name, _, detail = source.partition(":")
    if name in KINDS.names() and not KINDS.load(name).SUFFIXES:
        clips: list[Clip] = [KINDS.load(name).open_clip(detail, options)]
    else:
        clips = [_open(path, options) for path in _files(Path(source))]
    room = Memory(memory)
    return [keep(clip, room) for clip in clips]


def _by_suffix() -> dict[str, ModuleType]:
    """The kinds that open files; where two claim a suffix, it is ours that has it."""
    kinds = [KINDS.load(name) for name in KINDS.names()]
    kinds.sort(key=lambda kind: kind.__name__.startswith(KINDS.package))  # ours last
    return {suffix: kind for kind in kinds for suffix in kind.SUFFIXES}


def _files(path: Path) -> list[Path]:
    """The path itself, or, of a directory without images, the clips in it."""
    if not path.exists():
        raise FileNotFoundError(
            f"{path}: there is no such file or directory; expected a video, a directory of images or of videos, a zip of"
            ' images, or "synthetic"'
        )
    if not path.is_dir():
        return [path]
    kinds = _by_suffix()
    files = images.natural(file for file in path.iterdir() if file.is_file() and not file.name.startswith("."))
    clips = [file for file in files if file.suffix.lower() in kinds]
    pictures = [file for file in files if file.suffix.lower() in images.PICTURES]
    if clips and pictures:
        raise ValueError(f"{path}: holds images ({pictures[0].name}) and clips ({clips[0].name}); expected one kind")
    if not clips and not pictures:
        raise ValueError(
            f"{path}: no images and no videos in it; expected files that end in"
            f" {', '.join(images.PICTURES)}, or .mp4, .avi, .mkv, ..., or .zip"
        )
    return clips or [path]


def _open(path: Path, options: Options) -> Clip:
    suffix, kinds = path.suffix.lower(), _by_suffix()
    if path.is_dir():
        return images.directory(path, options.shape, labels=options.labels)
    if suffix in images.PICTURES:
        raise ValueError(f"{path}: a single image; give the directory that holds the images, {path.parent}")
    if suffix not in kinds:
        known = ", ".join(sorted(kinds))
        raise ValueError(f"{path}: found a file that ends in {suffix!r}, expected one of {known}, or a directory")
    clip: Clip = kinds[suffix].open_clip(str(path), options)
    return clip
