"""Sets of images: a directory or a zip is a clip."""

import hashlib
import io
import re
import warnings
import zipfile
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from ....storage.files import expect_file
from ..clip import LABELS, Labels, Pictures, Shape, check_shape, only_labels, read_boxes

SUFFIXES = (".zip",)
PICTURES = (".jpg", ".jpeg", ".png", ".bmp", ".webp")
PIXELS = 2**27  # per image; cameras have up to 102 million. A small file may claim any number
LARGEST = 2**28  # bytes of a file in a zip: an untrusted one may unpack to any size
UPRIGHT = {2: 0, 3: 3, 4: 1, 5: 5, 6: 4, 7: 6, 8: 2}  # EXIF orientation -> Pillow's transposition; 5 and above lie


class Images(Pictures):
    """A `Clip` of images in the given order, see `directory` and `open_clip`. read: name -> the bytes of the file;
    labels: a box file, None: not labelled; within: prefix of a name in messages, the zip."""

    kind = "images"
    rate = 25.0  # a set of images has no frame rate

    def __init__(
        self, names: Sequence[str], read: Callable[[str], bytes], shape: Shape, labels: Labels | None, within: str = ""
    ):
        self.shape = check_shape(shape)
        self.names, self._read, self._within = names, read, within
        digest = hashlib.sha256()
        sizes = [self._look(name, digest) for name in names]
        self.aspect = sizes[0][0] / sizes[0][1]
        self._boxes = read_boxes(labels, sizes) if labels else None
        if labels:
            digest.update(labels.text)
        self._data = digest.hexdigest()

    def __len__(self) -> int:
        return len(self.names)

    def _picture(self, number: int) -> Any:
        return decoded(self._within + self.names[number], self._read(self.names[number]))

    def _look(self, name: str, digest: Any) -> tuple[int, int]:
        """Adds a file to the digest; returns the image's width and height."""
        data = self._read(name)
        digest.update(Path(name).name.encode() + len(data).to_bytes(8, "little") + data)
        return size_of(self._within + name, data)


def directory(path: Path, shape: Shape) -> Images:
    """Returns a `Clip` of the images in a directory, in natural order of names, img2 before img10.

    The box file in it has one of the names LABELS. Raises ValueError or OSError, naming the file, for a directory without
    images, an image that cannot be read, and wrong labels (see `read_boxes`).
    """
    path = Path(path)
    files = [file for file in path.iterdir() if not file.name.startswith(".")]
    names = [str(file) for file in natural(file for file in files if file.suffix.lower() in PICTURES)]
    if not names:
        raise ValueError(f"{path}: no images in it; expected files that end in {', '.join(PICTURES)}")
    text = only_labels(path, [name for name in LABELS if (path / name).exists()])
    boxes = Labels(str(path / text), _bytes(path / text)) if text else None
    return Images(names, _bytes, shape, boxes)


def _bytes(name: str | Path) -> bytes:
    expect_file(name)
    return Path(name).read_bytes()


def open_clip(path: str | Path, shape: Shape) -> Images:
    """Returns a `Clip` of the images in a zip, in natural order of names. The only .txt or .csv file in it holds the boxes.

    Raises as `directory` does, and for anything but a zip.
    """
    expect_file(path)
    try:
        archive = zipfile.ZipFile(path)
    except (zipfile.BadZipFile, NotImplementedError) as error:  # the latter: a later version of the format
        raise ValueError(f"{path}: {error}; expected a zip of images") from None
    members = [name for name in archive.namelist() if not name.startswith("__MACOSX/") and not name.endswith("/")]
    members = [name for name in members if not Path(name).name.startswith(".")]
    pictures = [name for name in members if Path(name).suffix.lower() in PICTURES]
    named = {Path(name): name for name in pictures}  # "./a.png" has the path a.png
    names = [named[path] for path in natural(named)]
    texts = [name for name in members if Path(name).suffix.lower() in (".txt", ".csv")]
    if not names:
        raise ValueError(f"{path}: no images in it; expected files that end in {', '.join(PICTURES)}")

    def read(name: str) -> bytes:
        try:
            if (size := archive.getinfo(name).file_size) > LARGEST:
                raise ValueError(f"it unpacks to {size:,} bytes, expected at most {LARGEST:,}")
            return archive.read(name)
        except Exception as error:  # zipfile, zlib, lzma and bz2 raise different types, a password RuntimeError
            raise ValueError(f"{path}, {name}: cannot be unpacked ({error}); make the zip again") from None

    text = only_labels(path, texts)
    boxes = Labels(f"{path}, {text}", read(text)) if text else None
    return Images(names, read, shape, boxes, f"{path}, ")


def natural(paths: Iterable[Path]) -> list[Path]:
    """Returns the paths sorted with numbers by value: img2 before img10."""

    def key(path: Path) -> list[tuple[str, int]]:
        parts = re.split(r"(\d+)", str(path))
        return [(part.casefold(), 0) if place % 2 == 0 else ("", int(part)) for place, part in enumerate(parts)]

    return sorted(paths, key=lambda path: (key(path), str(path)))


def decoded(name: str, data: bytes) -> Any:
    """Returns the Pillow image in a file's bytes, upright; ValueError, with its name, if it cannot be read."""
    with _reading(name):
        picture = _opened(data)
        turn = UPRIGHT.get(_orientation(picture))
        return picture if turn is None else picture.transpose(turn)


def size_of(name: str, data: bytes) -> tuple[int, int]:
    """Returns width and height of `decoded(name, data)`, from the header alone."""
    with _reading(name):
        picture = _opened(data, pixels=False)
        width, height = picture.size
        return (height, width) if _orientation(picture) >= 5 else (width, height)


def _opened(data: bytes, pixels: bool = True) -> Any:
    from PIL import Image

    picture = Image.open(io.BytesIO(data))
    if picture.width * picture.height > PIXELS:
        raise ValueError(f"{picture.width} x {picture.height} pixels, expected at most {PIXELS:,}")
    if pixels:
        picture.load()
    return picture


def _orientation(picture: Any) -> int:
    """Returns the camera orientation, 1 to 8, from the header alone: Pillow's getexif would read all of a PNG file."""
    from PIL import Image

    exif = Image.Exif()
    exif.load(picture.info.get("exif", b""))
    orientation: int = exif.get(0x0112, 1)
    return orientation if orientation in UPRIGHT else 1


@contextmanager
def _reading(name: str) -> Iterator[None]:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # odd metadata, many pixels
            yield
    except Exception as error:  # Pillow's plugins raise any type on untrusted data
        reason = "not an image" if type(error).__name__ == "UnidentifiedImageError" else error
        raise ValueError(f"{name}: cannot be read as an image ({reason}); replace or remove it") from None
