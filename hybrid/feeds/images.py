"""Sets of images as clips: directories and zips, labelled or not; how a picture and its box come to the size asked for.

Every picture, those of videos too, is resized by Pillow: its bicubic filter is integer arithmetic, so the bytes are the
same on all machines.
"""

import hashlib
import io
import math
import re
import warnings
import zipfile
from collections.abc import Callable, Iterable, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from .frames import Frame, Shape, check_shape, inside, read_only

SUFFIXES = (".jpg", ".jpeg", ".png", ".bmp", ".webp")
LABELS = ("labels.txt", "labels.csv", "groundtruth_rect.txt")
LARGEST = 2**28  # bytes of a file in a zip: one from a stranger may unpack to anything
UPRIGHT = {2: 0, 3: 3, 4: 1, 5: 5, 6: 4, 7: 6, 8: 2}  # EXIF orientation -> Pillow's transposition; from 5 on it lies
RATE = 25.0  # a set of images states none

Region = tuple[float, float, float, float]  # left, top, right, bottom, in pixels of the original


class Images:
    """Images in the order given; a `Clip`. See `directory` and `zipped`, which make one.

    names  of the images
    read   name -> the bytes of the file
    boxes  what `read_boxes` gives; None: not labelled
    """

    def __init__(self, names: Sequence[str], read: Callable[[str], bytes], shape: Shape, labels: "Labels | None", crop):
        self.shape, self.rate = check_shape(shape), RATE
        self.names, self.crop = names, bool(crop)
        self._read = read
        digest = hashlib.sha256()
        sizes = [self._look(name, digest) for name in names]
        self.aspect = aspect_shown(sizes[0], self.shape, self.crop)
        self._boxes = read_boxes(labels, sizes) if labels else None
        if labels:
            digest.update(labels.text)
        self._data = digest.hexdigest()

    def __len__(self) -> int:
        return len(self.names)

    def __getitem__(self, number: int) -> Frame:
        inside(number, len(self))
        picture = decoded(self.names[number], self._read(self.names[number]))
        cut = region(picture.size, self.shape, self.crop)
        box = None if self._boxes is None else placed(self._boxes[number], cut, self.shape)
        return Frame(resized(picture, cut, self.shape), box)

    def describe(self) -> dict[str, Any]:
        """See `Clip`."""
        facts = {"kind": "images", "data": self._data, "frames": len(self), "labelled": self._boxes is not None}
        return facts | {"shape": list(self.shape), "crop": self.crop}

    def _look(self, name: str, digest) -> tuple[int, int]:
        """Add a file to the digest; its size as width, height."""
        data = self._read(name)
        digest.update(Path(name).name.encode() + len(data).to_bytes(8, "little") + data)
        return size_of(name, data)


class Labels(NamedTuple):
    """A file of boxes: `name` for messages, `text` as read."""

    name: str
    text: bytes


def directory(path: Path, shape: Shape, *, labels=True, crop=False) -> Images:
    """The images in a directory, in natural order of names, img2 before img10; a `Clip`.

    Boxes stand in one of `LABELS` in it. Raises ValueError or OSError, naming the file, for a directory without images,
    an image that cannot be read, and wrong labels (see `read_boxes`).
    """
    path = Path(path)
    files = [file for file in path.iterdir() if not file.name.startswith(".")]
    names = [str(file) for file in natural(file for file in files if file.suffix.lower() in SUFFIXES)]
    if not names:
        raise ValueError(f"{path}: no images in it; expected files that end in {', '.join(SUFFIXES)}")
    found = [path / name for name in LABELS if (path / name).exists()] if labels else []
    if len(found) > 1:
        raise ValueError(f"{path}: holds both {found[0].name} and {found[1].name}; expected one file of labels")
    boxes = Labels(str(found[0]), found[0].read_bytes()) if found else None
    return Images(names, lambda name: Path(name).read_bytes(), shape, boxes, crop)


def zipped(path: Path, shape: Shape, *, labels=True, crop=False) -> Images:
    """The images in a zip, in natural order of names; a `Clip`. Boxes stand in the one .txt or .csv file in it.

    Raises as `directory` does, and for what is no zip.
    """
    try:
        archive = zipfile.ZipFile(path)
    except zipfile.BadZipFile as error:
        raise ValueError(f"{path}: {error}; expected a zip of images") from None
    members = [name for name in archive.namelist() if not name.startswith("__MACOSX/") and not name.endswith("/")]
    members = [name for name in members if not Path(name).name.startswith(".")]
    names = [str(name) for name in natural(Path(name) for name in members if Path(name).suffix.lower() in SUFFIXES)]
    texts = [name for name in members if Path(name).suffix.lower() in (".txt", ".csv")] if labels else []
    if not names:
        raise ValueError(f"{path}: no images in it; expected files that end in {', '.join(SUFFIXES)}")
    if len(texts) > 1:
        raise ValueError(f"{path}: holds both {texts[0]} and {texts[1]}; expected one file of labels")

    def read(name: str) -> bytes:
        return _unpacked(archive, path, name)

    boxes = Labels(f"{path}, {texts[0]}", read(texts[0])) if texts else None
    return Images(names, read, shape, boxes, crop)


def _unpacked(archive: zipfile.ZipFile, path: Path, name: str) -> bytes:
    if (size := archive.getinfo(name).file_size) > LARGEST:
        raise ValueError(f"{path}, {name}: unpacks to {size:,} bytes, expected at most {LARGEST:,}")
    try:
        return archive.read(name)
    except Exception as error:  # zipfile, zlib, lzma and bz2 each have their own, a password is a RuntimeError
        raise ValueError(f"{path}, {name}: cannot be unpacked ({error}); make the zip anew") from None


def natural(paths: Iterable[Path]) -> list[Path]:
    """Sorted with numbers by value: img2 before img10."""

    def key(path: Path) -> list:
        parts = re.split(r"(\d+)", str(path))
        return [(part.casefold(), 0) if place % 2 == 0 else ("", int(part)) for place, part in enumerate(parts)]

    return sorted(paths, key=lambda path: (key(path), str(path)))


def decoded(name: str, data: bytes):
    """The Pillow image in a file's bytes, upright; ValueError, with its name, when it cannot be read."""
    with _reading(name):
        picture = _opened(data)
        turn = UPRIGHT.get(_orientation(picture))
        return picture if turn is None else picture.transpose(turn)


def size_of(name: str, data: bytes) -> tuple[int, int]:
    """Width and height of `decoded(name, data)`, from the header alone."""
    with _reading(name):
        picture = _opened(data, pixels=False)
        return picture.size[::-1] if _orientation(picture) >= 5 else picture.size


def _opened(data: bytes, pixels=True):
    from PIL import Image

    picture = Image.open(io.BytesIO(data))
    if pixels:
        picture.load()
    return picture


def _orientation(picture) -> int:
    """How the camera was held, 1 to 8, from the header alone: a PNG file's getexif would read all of it."""
    from PIL import Image

    exif = Image.Exif()
    exif.load(picture.info.get("exif", b""))
    found = exif.get(0x0112, 1)
    return found if found in UPRIGHT else 1


@contextmanager
def _reading(name: str):
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of odd metadata, of many pixels
            yield
    except Exception as error:  # Pillow's plugins raise what they like on data from strangers
        reason = "not an image" if type(error).__name__ == "UnidentifiedImageError" else error
        raise ValueError(f"{name}: cannot be read as an image ({reason}); replace or remove it") from None


def region(size: tuple[int, int], shape: Shape, crop: bool) -> Region:
    """What is shown of a picture of width, height: all, or with crop the largest centred part of the shape's aspect."""
    width, height = float(size[0]), float(size[1])
    left = top = 0.0
    if crop:
        aspect = shape[1] / shape[0]
        left = max(0.0, width - height * aspect) / 2
        top = max(0.0, height - width / aspect) / 2
    return left, top, width - left, height - top


def aspect_shown(size: tuple[int, int], shape: Shape, crop: bool) -> float:
    """Width / height of the region."""
    left, top, right, bottom = region(size, shape, crop)
    return (right - left) / (bottom - top)


def resized(picture, cut: Region, shape: Shape) -> np.ndarray:
    """A Pillow image's region as (rows, columns, channels) uint8, by the cubic filter; alpha is dropped."""
    from PIL import Image

    picture = _plain(picture)
    if picture.size != (shape[1], shape[0]) or cut != (0, 0, *picture.size):
        picture = picture.resize((shape[1], shape[0]), Image.Resampling.BICUBIC, box=cut)
    pixels = np.array(picture.convert("L" if shape[2] == 1 else "RGB"), np.uint8)
    return read_only(pixels.reshape(shape))


def _plain(picture):
    """The picture in a mode whose values can be averaged: grey or RGB, 8 bits."""
    from PIL import Image

    if picture.mode.startswith(("I", "F")):  # 16 bits, which Pillow would clip
        return Image.fromarray((np.clip(np.array(picture, np.float64), 0, 65535) / 257).round().astype(np.uint8))
    if picture.mode in ("RGB", "L"):
        return picture
    if "transparency" in picture.info:
        picture = picture.convert("RGBA")  # else Pillow warns
    return picture.convert("L" if picture.mode in ("1", "LA") else "RGB")


def read_boxes(labels: Labels, sizes: Sequence[tuple[int, int]]) -> np.ndarray:
    """The boxes of a file of lines x,y,w,h, one a frame, in pixels of the original: (frames, 4) float64, zeros if absent.

    sizes  width, height of every frame

    An empty line, or a width or height of 0, says that the target is absent; a box may reach over an edge. Commas, tabs and
    spaces separate. Raises ValueError, with file and line, for a wrong count, for what is no number, and for a box wholly
    outside its frame.
    """
    try:
        lines = labels.text.decode("utf-8-sig").splitlines()
    except UnicodeDecodeError as error:
        raise ValueError(f"{labels.name}: not UTF-8 ({error.reason}); expected lines x,y,w,h") from None
    while len(lines) > len(sizes) and not lines[-1].strip():
        lines.pop()
    if len(lines) != len(sizes):
        raise ValueError(f"{labels.name}: {len(lines)} lines, expected {len(sizes)}, a line x,y,w,h for each frame")
    found = [_box(labels.name, at, line, size) for at, (line, size) in enumerate(zip(lines, sizes, strict=True), 1)]
    return np.array(found, np.float64).reshape(-1, 4)


def _box(name: str, at: int, line: str, size: tuple[int, int]) -> tuple[float, ...]:
    fields = re.split(r"\s*[,;\s]\s*", line.strip()) if line.strip() else ["0"] * 4
    try:
        x, y, width, height = map(float, fields)
    except ValueError:
        x = math.nan
    if math.isnan(x) or not all(map(math.isfinite, (x, y, width, height))):
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


def placed(box: np.ndarray, cut: Region, shape: Shape) -> np.ndarray:
    """A box of the original, as (4,) float32 in pixels of the region resized to `shape`; zeros if nothing of it is seen."""
    left, top, right, bottom = cut
    scale = np.array([shape[1] / (right - left), shape[0] / (bottom - top)])
    limit = np.array([shape[1], shape[0]])
    low = np.clip((box[:2] - (left, top)) * scale, 0, limit)
    size = np.clip((box[:2] + box[2:] - (left, top)) * scale, 0, limit) - low
    found = np.concatenate([low, size]).astype(np.float32)
    return read_only(found if (found[2:] > 0).all() else np.zeros(4, np.float32))
