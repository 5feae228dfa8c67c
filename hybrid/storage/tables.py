"""Archives of arrays and Parquet files, which strangers may have written: read without pickle and within bounds of memory.

An .npz is refused before it fills the memory; columns of a Parquet file are read a piece at a time.
"""

import zipfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from . import files

PACKED = 64  # times that a file may grow when it is read: vectors, ratings and frames hardly do
UNPACKED = 2**28  # bytes of a group of rows that may come of however few; beyond them see PACKED
ROWS = 1024  # that are in memory at a time, or fewer where
BYTES = 2**26  # they would take more


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
    files.expect_file(path)
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
        old = np.lib.format.read_magic(file) == (1, 0)
        shape, _, dtype = (np.lib.format.read_array_header_1_0 if old else np.lib.format.read_array_header_2_0)(file)
    if dtype.hasobject or int(np.prod(shape, dtype=object)) * dtype.itemsize > member.file_size:
        raise ValueError(f"{member.filename}: {dtype} {shape}, of which it does not hold as much")


def open_parquet(path: str | Path, expected: str = "table") -> Any:
    """A pyarrow ParquetFile, whose texts come as dictionaries: one that it holds once, for many rows, is in memory once.

    expected  what it should be, for messages

    Raises OSError for what is no file or cannot be opened; ValueError, naming it, for one that is damaged or has a group of
    rows that would unpack to more than PACKED times its size, and where pyarrow is missing.
    """
    try:
        from pyarrow import parquet
    except ImportError:
        raise ValueError(f"{path}: a Parquet file is read with pyarrow; pip install pyarrow") from None
    files.expect_file(path)
    try:
        file = parquet.ParquetFile(path)
        texts = [one.name for one in file.schema_arrow if is_text(one.type)]
        file = parquet.ParquetFile(path, read_dictionary=texts)
    except Exception as error:
        raise _damaged(path, error, expected) from None
    packed = Path(path).stat().st_size
    for number in range(file.num_row_groups):  # which far more than the file would take only of a trap
        size = file.metadata.row_group(number).total_byte_size
        if size > max(UNPACKED, PACKED * packed):
            raise ValueError(
                f"{path}: rows of {packed:,} bytes would grow to {size:,}; expected at most {PACKED} times as many"
            )
    return file


def is_text(kind: Any) -> bool:
    """Whether a type of Arrow is one of texts, or of texts as a dictionary."""
    from pyarrow import types

    kind = kind.value_type if types.is_dictionary(kind) else kind
    return bool(types.is_string(kind) or types.is_large_string(kind))


def parquet_batches(file: Any, columns: Sequence[str]) -> Iterator[Any]:
    """Batches of pyarrow, each of as many rows of a group as take BYTES, ROWS at most."""
    below = tuple(f"{name}." for name in columns)
    leaves = [leaf for leaf in range(len(file.schema)) if f"{file.schema.column(leaf).path}.".startswith(below)]
    for number in range(file.num_row_groups):
        chosen = {"columns": list(columns), "row_groups": [number]}
        next(file.iter_batches(1, **chosen), None)  # raises where `group.column` would end the process (pyarrow 26)
        group = file.metadata.row_group(number)
        row = sum(_size(group.column(leaf)) for leaf in leaves) / max(group.num_rows, 1)
        yield from file.iter_batches(max(1, min(ROWS, int(BYTES / max(row, 1)))), **chosen)


def parquet_values(column: Any) -> np.ndarray:
    """A column of a batch as an array, one of texts as an array of objects in which equal texts are one object."""
    if not hasattr(column, "dictionary"):
        return np.asarray(column)
    places, at = np.unique(column.indices.fill_null(-1).to_numpy(zero_copy_only=False), return_inverse=True)
    some = places[places >= 0]
    texts = np.empty(len(places), object)
    texts[:] = [None] * (len(places) - len(some)) + column.dictionary.take(some).to_pylist()
    return texts[at]


def parquet_columns(path: str | Path, file: Any, names: Sequence[str | None]) -> Iterator[list[Any]]:
    """The `parquet_values` of columns, a list for each of the `parquet_batches`; None in it where there is no name.

    Raises ValueError, naming the file, where it is damaged.
    """
    try:
        for batch in parquet_batches(file, [name for name in names if name is not None]):
            yield [None if name is None else parquet_values(batch[name]) for name in names]
    except Exception as error:
        raise _damaged(path, error) from None


def _size(column: Any) -> int:
    """Bytes that a column of a group takes in memory: of numbers 8 at most, though the file may hold them once."""
    size: int = max(column.total_uncompressed_size, 8 * column.num_values)
    return size


def _damaged(path: str | Path, error: Exception, expected: str = "table") -> ValueError:
    """What to raise for an error of pyarrow, which has its own."""
    return ValueError(f"{path}: no Parquet {expected} ({error}); was it cut short?")
