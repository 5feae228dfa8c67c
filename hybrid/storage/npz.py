"""Archives of arrays, .npz, of strangers: read without pickle, and refused before they fill the memory."""

import zipfile
from pathlib import Path
from typing import Any

import numpy as np

from . import document

PACKED = 64  # times that a file may grow when it is read: vectors, ratings and frames hardly do


def read(path: str | Path, expected: str = "plain arrays") -> dict[str, np.ndarray]:
    """The arrays of an .npz, by name.

    expected  what should be in it, for messages

    Raises OSError for a file that cannot be opened, and ValueError, naming it, for what is no .npz, holds objects, or would
    grow to more than PACKED times its size.
    """
    refuse_large(path, expected)
    try:
        with np.load(path, allow_pickle=False) as archive:
            return {name: archive[name] for name in archive.files}
    except Exception as error:  # zipfile, zlib and NumPy each have their own
        raise ValueError(f"{path}: no .npz that can be read ({error}); expected one of {expected}") from None


def refuse_large(path: str | Path, expected: str = "plain arrays") -> None:
    """Raise what `read` raises, but for what only the content of arrays tells; little is read, and little memory taken."""
    document.expect_file(path)
    with open(path, "rb") as file:
        try:
            with zipfile.ZipFile(file) as archive:
                refuse_growth(path, sum(member.file_size for member in archive.infolist()))
                for member in archive.infolist():
                    _refuse(archive, member)
        except Exception as error:
            raise ValueError(f"{path}: no .npz that can be read ({error}); expected one of {expected}") from None


def refuse_growth(path: str | Path, size: int) -> None:
    """ValueError where what is read takes `size` bytes, far more than the file."""
    packed = Path(path).stat().st_size
    if size > PACKED * packed:
        raise ValueError(f"it would grow to more than {PACKED} times its {packed:,} bytes")


def _refuse(archive: zipfile.ZipFile, member: zipfile.ZipInfo) -> None:
    """ValueError for an array that claims more than is there, or holds objects."""
    with archive.open(member) as file:
        shape, dtype = _header(file)
    if dtype.hasobject or int(np.prod(shape, dtype=object)) * dtype.itemsize > member.file_size:
        raise ValueError(f"{member.filename}: {dtype} {shape}, of which it does not hold as much")


def _header(file: Any) -> tuple[tuple[int, ...], np.dtype[Any]]:
    version = np.lib.format.read_magic(file)
    read = np.lib.format.read_array_header_1_0 if version == (1, 0) else np.lib.format.read_array_header_2_0
    shape, _, dtype = read(file)
    return shape, dtype
