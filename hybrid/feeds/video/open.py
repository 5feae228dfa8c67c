"""Lookup of clips by name: the only module that knows every kind of clip."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from .clip import Clip, Frame, Shape, aspect_of, check_shape, inside, read_only
from .clips import images, synthetic, video_file

MEMORY = 2**30  # bytes of cached frames, over all clips opened together
KINDS = {suffix: kind for kind in (images, video_file) for suffix in kind.SUFFIXES}


def open_clips(source: str, shape: Shape) -> Sequence[Clip]:
    """Opens the clips that a text names, with frames of `shape`, and their boxes if any, see hybrid/feeds/video/clip.py.

    source  "synthetic" or "synthetic:SEED"; a video file; a zip of images; a directory of images, or of videos and zips

    Up to 1 GiB of decoded frames is cached. Raises ValueError or OSError, naming the file, for a path that is missing, empty,
    of an unknown kind or cannot be decoded.
    """
    check_shape(shape)
    name, _, detail = source.partition(":")
    if name == "synthetic":
        return kept([synthetic.open_clip(detail, shape)])
    return kept([_open(path, shape) for path in _files(Path(source))])


def kept(clips: Sequence[Clip]) -> list[Clip]:
    """Returns the clips; those that fit into MEMORY as a whole keep decoded frames: part would not help cyclic access."""
    left, found = MEMORY, []
    for clip in clips:
        size = len(clip) * int(np.prod(clip.shape))
        found.append(Kept(clip) if size <= left else clip)
        left -= size * (size <= left)
    return found


class Kept:
    """A `Clip` whose frames are decoded once and then stay in memory."""

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
        """Returns the description; see `Clip`."""
        return self.clip.describe()


def _files(path: Path) -> list[Path]:
    """Returns the path itself or, for a directory without images, the clips in it."""
    if not path.exists():
        raise FileNotFoundError(
            f'{path}: there is no such file or directory; expected a video, a folder, a zip or "synthetic"'
        )
    if not path.is_dir():
        return [path]
    files = images.natural(file for file in path.iterdir() if file.is_file() and not file.name.startswith("."))
    clips = [file for file in files if file.suffix.lower() in KINDS]
    pictures = [file for file in files if file.suffix.lower() in images.PICTURES]
    if clips and pictures:
        raise ValueError(f"{path}: holds images ({pictures[0].name}) and clips ({clips[0].name}); expected one kind")
    if not clips and not pictures:
        raise ValueError(
            f"{path}: no images and no videos in it; expected {', '.join(images.PICTURES)}, .mp4, .avi, ... or .zip"
        )
    return clips or [path]


def _open(path: Path, shape: Shape) -> Clip:
    suffix = path.suffix.lower()
    if path.is_dir():
        return images.directory(path, shape)
    if suffix in images.PICTURES:
        raise ValueError(f"{path}: a single image; give the directory that holds the images, {path.parent}")
    if suffix not in KINDS:
        known = ", ".join(sorted(KINDS))
        raise ValueError(f"{path}: found a file that ends in {suffix!r}, expected one of {known}, or a directory")
    return KINDS[suffix].open_clip(str(path), shape)
