"""Safe reading of untrusted array archives and Parquet files: no pickle, bounded memory.

An .npz is rejected before it fills the memory; Parquet columns are read in pieces.
"""

import zipfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from . import files

PACKED = 64  # maximum expansion of a file when read; vectors, ratings and frames barely expand
UNPACKED = 2**28  # bytes of an unpacked row group that are always allowed; beyond them PACKED applies
ROWS = 1024  # maximum rows in memory,
BYTES = 2**26  # and their maximum bytes


def read(path: str | Path, expected: str = "plain arrays") -> dict[str, np.ndarray]:
    """Returns the arrays of an .npz, by name.

    expected  description of the content, for messages

    Raises OSError for a file that cannot be opened; ValueError, with its name, for one that is not an .npz, contains objects,
    or expands beyond PACKED times its size.
    """
    refuse_large(path, expected)
    try:
        with np.load(path, allow_pickle=False) as archive:
            return {name: archive[name] for name in archive.files}
    except Exception as error:  # zipfile, zlib and NumPy raise different errors
        raise ValueError(f"{path}: no .npz that can be read ({error}); expected one of {expected}") from None


def refuse_large(path: str | Path, expected: str = "plain arrays") -> None:
    """Raises the errors of `read` that need no array contents; reads little and takes little memory."""
    files.expect_file(path)
    with open(path, "rb") as file:
        try:
            with zipfile.ZipFile(file) as archive:
                packed = Path(path).stat().st_size
                if sum(member.file_size for member in archive.infolist()) > PACKED * packed:
                    raise ValueError(f"it would grow to more than {PACKED} times its {packed:,} bytes")
                for member in archive.infolist():
                    _refuse(archive, member)
        except Exception as error:
            raise ValueError(f"{path}: no .npz that can be read ({error}); expected one of {expected}") from None


def _refuse(archive: zipfile.ZipFile, member: zipfile.ZipInfo) -> None:
    """Raises ValueError for an array that declares more bytes than stored, or contains objects."""
    with archive.open(member) as file:
        old = np.lib.format.read_magic(file) == (1, 0)
        shape, _, dtype = (np.lib.format.read_array_header_1_0 if old else np.lib.format.read_array_header_2_0)(file)
    if dtype.hasobject or int(np.prod(shape, dtype=object)) * dtype.itemsize > member.file_size:
        raise ValueError(f"{member.filename}: {dtype} {shape}, which needs more bytes than it has")


def open_parquet(path: str | Path) -> Any:
    """Returns a pyarrow ParquetFile with dictionary-encoded strings: repeated strings are in memory once.

    Raises OSError for a path that is not a file or cannot be opened; ValueError, with its name, if it is damaged, if a row
    group would expand beyond PACKED times its size, or if pyarrow is missing.
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
        raise _damaged(path, error) from None
    held = Path(path).stat().st_size
    for number in range(file.num_row_groups):  # only a decompression bomb far exceeds its file
        size = file.metadata.row_group(number).total_byte_size
        if size > max(UNPACKED, PACKED * held):
            raise ValueError(f"{path}: rows of {held:,} bytes would grow to {size:,}; expected at most {PACKED} times")
    return file


def is_text(kind: Any) -> bool:
    """True if an Arrow type is a string or a dictionary of strings."""
    from pyarrow import types

    kind = kind.value_type if types.is_dictionary(kind) else kind
    return bool(types.is_string(kind) or types.is_large_string(kind))


def parquet_batches(file: Any, columns: Sequence[str]) -> Iterator[Any]:
    """Yields pyarrow batches; each has rows of one group, up to BYTES in memory and at most ROWS."""
    below = tuple(f"{name}." for name in columns)
    leaves = [leaf for leaf in range(len(file.schema)) if f"{file.schema.column(leaf).path}.".startswith(below)]
    for number in range(file.num_row_groups):
        chosen = {"columns": list(columns), "row_groups": [number]}
        next(file.iter_batches(1, **chosen), None)  # raises, where `group.column` would crash the process (pyarrow 26)
        group = file.metadata.row_group(number)
        parts = (group.column(leaf) for leaf in leaves)
        # At least 8 bytes per number, since files may store repeated ones once.
        row = sum(max(one.total_uncompressed_size, 8 * one.num_values) for one in parts) / max(group.num_rows, 1)
        yield from file.iter_batches(max(1, min(ROWS, int(BYTES / max(row, 1)))), **chosen)


def parquet_values(column: Any) -> np.ndarray:
    """Returns a batch's column as an array; strings as an object array with shared objects for equal strings."""
    if not hasattr(column, "dictionary"):
        return np.asarray(column)
    places, at = np.unique(column.indices.fill_null(-1).to_numpy(zero_copy_only=False), return_inverse=True)
    some = places[places >= 0]
    texts = np.empty(len(places), object)
    texts[:] = [None] * (len(places) - len(some)) + column.dictionary.take(some).to_pylist()
    return texts[at]


def parquet_columns(path: str | Path, file: Any, names: Sequence[str | None]) -> Iterator[list[Any]]:
    """Yields the `parquet_values` of columns, a list per batch, None for absent names; ValueError for a damaged file."""
    try:
        for batch in parquet_batches(file, [name for name in names if name is not None]):
            yield [None if name is None else parquet_values(batch[name]) for name in names]
    except Exception as error:
        raise _damaged(path, error) from None


def _damaged(path: str | Path, error: Exception) -> ValueError:
    """Returns the error to raise for one of pyarrow's own types."""
    return ValueError(f"{path}: no Parquet table ({error}); was it cut short?")
