"""Names and their vectors in formats that hold any name: .npz and .npy of NumPy, a table separated by tabs, Parquet."""

import csv
import io
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import numpy as np

from . import npz as npz_arrays
from . import parquet as parquet_files

NAMES = ("names", "ids", "words")  # what the names of an .npz may be called; ours are the first

Named = tuple[list[str], np.ndarray]


def npz(names: Sequence[str], rows: np.ndarray) -> Iterator[bytes]:
    """The bytes of an .npz with `names` (V,) and `vectors` (V, D)."""
    buffer = io.BytesIO()
    np.savez(buffer, names=np.array(names), vectors=rows)
    yield buffer.getvalue()


def tsv(names: Sequence[str], rows: np.ndarray) -> Iterator[bytes]:
    """The bytes of a table: a header, then a line a name, quoted as in CSV where need be; every bit of a number is kept."""
    buffer = io.StringIO()
    writer = csv.writer(buffer, delimiter="\t", lineterminator="\n")
    writer.writerow(["name", *range(1, rows.shape[1] + 1)])
    for name, row in zip(names, rows, strict=True):
        writer.writerow([name, *(f"{number:.9g}" for number in row.tolist())])
        yield buffer.getvalue().encode()
        buffer.seek(0)
        buffer.truncate()


def parquet(names: Sequence[str], rows: np.ndarray) -> Iterator[bytes]:
    """The bytes of a Parquet file with columns `name` and `vector`; ValueError where pyarrow is missing."""
    try:
        import pyarrow
        from pyarrow import parquet
    except ImportError:
        raise ValueError(
            "parquet: written with pyarrow, which is missing; pip install pyarrow, or write .npz"
        ) from None
    numbers = pyarrow.FixedSizeListArray.from_arrays(pyarrow.array(rows.reshape(-1)), rows.shape[1])
    buffer = pyarrow.BufferOutputStream()
    parquet.write_table(pyarrow.table({"name": pyarrow.array(list(names)), "vector": numbers}), buffer)
    yield buffer.getvalue().to_pybytes()


WRITERS = {"npz": npz, "tsv": tsv, "parquet": parquet}


def reader(begin: bytes) -> Callable[[str | Path], Named] | None:
    """What reads a file that begins so; None: it is in none of these formats."""
    if begin.startswith(b"PK\3\4"):
        return read_npz
    if begin.startswith(b"\x93NUMPY"):
        return read_npy
    if begin.startswith(b"PAR1"):
        return read_parquet
    return read_tsv if begin.startswith(b"name\t1") else None


def read_npz(path: str | Path) -> Named:
    """Arrays `vectors` and `names` (or `ids`) of an .npz; ValueError for what is none, or would fill the memory."""
    arrays = npz_arrays.read(path, "names and vectors")
    called = next((name for name in NAMES if name in arrays), None)
    if called is None or "vectors" not in arrays:
        found = ", ".join(map(repr, arrays)) or "nothing"
        raise ValueError(f"{path}: no .npz of vectors (found {found}); expected arrays names and vectors")
    try:
        names = [str(name) for name in np.atleast_1d(arrays[called]).tolist()]
    except (ValueError, SystemError) as error:  # numbers that are no characters
        raise ValueError(f"{path}: {called}: {error}; expected words") from None
    return _checked(path, names, arrays["vectors"])


def read_npy(path: str | Path) -> Named:
    """The rows of an .npy, memory-mapped; their names are their numbers."""
    try:
        rows = np.load(path, mmap_mode="r", allow_pickle=False)
    except Exception as error:  # of NumPy, which reads the header as Python
        raise ValueError(f"{path}: no .npy of vectors ({error}); expected floats (V, D)") from None
    return _checked(path, [str(number) for number in range(len(rows) if rows.ndim else 0)], rows)


def read_tsv(path: str | Path) -> Named:
    """The table that `tsv` writes; ValueError, with the line, for another."""
    names, rows = [], []
    with open(path, encoding="utf-8", newline="") as file:
        lines = csv.reader(file, delimiter="\t", strict=True)
        try:
            width = len(next(lines)) - 1
            for name, *numbers in lines:
                if len(numbers) != width:
                    raise ValueError(f"{len(numbers)} numbers, expected {width}")
                names.append(name)
                rows.append(np.array(numbers, np.float64))
        except (ValueError, csv.Error) as error:
            raise ValueError(f"{path}, line {lines.line_num}: {error}; is it cut short?") from None
    return _checked(path, names, np.array(rows))


def read_parquet(path: str | Path) -> Named:
    """Columns `name` and `vector` of a Parquet file; ValueError for what is none, and where pyarrow is missing."""
    file = parquet_files.opened(path, "table of vectors")
    names: list[str] = []
    rows: list[np.ndarray] = []
    try:
        for batch in parquet_files.batches(file, ["name", "vector"]):
            names += map(str, parquet_files.values(batch["name"]))
            rows.append(batch["vector"].flatten().to_numpy(zero_copy_only=False).reshape(len(batch), -1))
            if len(rows) == 1:
                npz_arrays.refuse_growth(path, file.metadata.num_rows * rows[0][0].nbytes)
        found = np.concatenate(rows)
    except Exception as error:
        raise ValueError(f"{path}: no Parquet table of vectors ({error}); expected columns name and vector") from None
    return _checked(path, names, found)


def _checked(path: str | Path, names: list[str], rows: np.ndarray) -> Named:
    if rows.ndim != 2 or rows.dtype.kind != "f" or len(rows) != len(names) or not rows.size:
        raise ValueError(
            f"{path}: found {len(names)} names and {rows.dtype} {rows.shape}, expected floats (V, D), a row a name"
        )
    with np.errstate(over="ignore"):  # too large a number becomes infinite, and is refused as such
        return names, np.asarray(rows, np.float32)
