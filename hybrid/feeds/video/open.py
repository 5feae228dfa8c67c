"""Clips by name: the one module that knows every kind of clip."""

from collections.abc import Sequence
from pathlib import Path

from . import images, video_file
from .boxes import labels_beside
from .cache import MEMORY, Memory, keep
from .camera import Camera
from .clip import Clip, Live, Shape, check_shape
from .scene import Scene


def open_clips(
    source: str, shape: Shape, *, labels=True, crop=False, memory: int = MEMORY, length: int = 1000
) -> Sequence[Clip | Live]:
    """The clips that a text names, with frames of `shape`.

    source  "synthetic" or "synthetic:SEED"; "camera" or "camera:1"; a video file; a directory of images, or of videos and
            zips; a zip of images
    labels  read the boxes where there are any (see `video_file.Video`, `images.directory`, `images.zipped`)
    crop    cut to the aspect of `shape` around the centre; else stretch
    memory  bytes of decoded frames to keep
    length  frames of the synthetic scene

    Raises ValueError or OSError, naming the file, for what is missing, empty, of an unknown kind or cannot be decoded.
    """
    shape = check_shape(shape)
    kind, _, detail = source.partition(":")
    if kind == "camera":
        return [Camera(_number("camera", detail), shape, crop=crop)]
    room = Memory(memory)
    if kind == "synthetic":
        return [keep(Scene(shape, length, seed=_number("synthetic", detail)), room)]
    return [keep(_open(path, shape, labels, crop), room) for path in _files(Path(source))]


def _number(kind: str, detail: str) -> int:
    if detail and not (detail.isascii() and detail.isdigit()):
        raise ValueError(f"{kind}:{detail}: expected a whole number after the colon, as in {kind}:1")
    return int(detail or 0)


def _files(path: Path) -> list[Path]:
    """The path itself, or, of a directory without images, the videos and zips in it."""
    if not path.exists():
        raise FileNotFoundError(
            f"{path}: there is no such file or directory; expected a video, a directory of images or of videos, a zip of"
            ' images, "synthetic" or "camera"'
        )
    if not path.is_dir():
        return [path]
    files = images.natural(file for file in path.iterdir() if file.is_file() and not file.name.startswith("."))
    clips = [file for file in files if file.suffix.lower() in (*video_file.SUFFIXES, ".zip")]
    pictures = [file for file in files if file.suffix.lower() in images.SUFFIXES]
    if clips and pictures:
        raise ValueError(f"{path}: holds images ({pictures[0].name}) and clips ({clips[0].name}); expected one kind")
    if not clips and not pictures:
        raise ValueError(
            f"{path}: no images and no videos in it; expected files that end in"
            f" {', '.join(images.SUFFIXES)}, or .mp4, .avi, .mkv, ..., or .zip"
        )
    return clips or [path]


def _open(path: Path, shape: Shape, labels: bool, crop: bool) -> Clip:
    suffix = path.suffix.lower()
    if path.is_dir():
        return images.directory(path, shape, labels=labels, crop=crop)
    if suffix == ".zip":
        return images.zipped(path, shape, labels=labels, crop=crop)
    if suffix in video_file.SUFFIXES:
        return video_file.Video(path, shape, labels=labels_beside(path) if labels else None, crop=crop)
    if suffix in images.SUFFIXES:
        raise ValueError(f"{path}: a single image; give the directory that holds the images, {path.parent}")
    known = ", ".join((*video_file.SUFFIXES, ".zip"))
    raise ValueError(f"{path}: found a file that ends in {suffix!r}, expected one of {known}, or a directory")
