"""Vectors in a file for other programs: in word2vec's two formats, whose names have no white space, or in one of three more."""

import csv
import io
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np

from . import atomic, vectors

FORMATS = ("text", "binary", "npz", "tsv", "parquet")  # the first two are word2vec's


def format_of(path: str | Path, named: str | None = None) -> str:
    """The format of a file: `named`, where that is given; else by the path's suffix (.npz, .tsv, .parquet), else "text"."""
    ending = Path(path).suffix.lower().removeprefix(".")
    return named or (ending if ending in FORMATS[2:] else "text")


def write(path: str | Path, names: Sequence[str], rows: np.ndarray, format: str, *, escape: bool = False) -> None:
    """Write names and their vectors. The file appears whole or, on any error, stays as it was.

    names   V strings
    rows    (V, D) floats, written as float32; every format keeps every bit of them
    format  "text" or "binary": those of word2vec
            "npz": arrays `names` (V,) and `vectors` (V, D), for numpy.load
            "tsv": a header, then a line for each name, which is quoted as in CSV where it holds a tab, a quote or a line end
            "parquet": columns `name` and `vector`; needs pyarrow
    escape  for text and binary: write _ in the place of white space in a name

    Raises ValueError for what a format cannot hold, for names that escaping would make equal, and where pyarrow is missing;
    OSError for a file that cannot be written.
    """
    if escape and format not in FORMATS[:2]:
        raise ValueError(f"--escape: not used by {format}, which holds any name; leave it out")
    if format in FORMATS[:2]:
        vectors.save(path, _escaped(names) if escape else names, rows, binary=format == "binary")
        return
    rows = vectors.check(names, rows)
    atomic.write(path, {"npz": _npz, "tsv": _tsv, "parquet": _parquet}[format](names, rows))


def _escaped(names: Sequence[str]) -> list[str]:
    first: dict[str, str] = {}
    for name in names:
        plain = "".join("_" if character.isspace() else character for character in name)
        if plain in first:
            raise ValueError(
                f"--escape: {first[plain]!r} and {name!r} would both be {plain!r}; expected names that stay different: "
                "leave it out and write .npz, .tsv or .parquet, which hold any name"
            )
        first[plain] = name
    return list(first)


def _npz(names: Sequence[str], rows: np.ndarray) -> Iterator[bytes]:
    buffer = io.BytesIO()
    np.savez(buffer, names=np.array(names), vectors=rows)
    yield buffer.getvalue()


def _tsv(names: Sequence[str], rows: np.ndarray) -> Iterator[bytes]:
    buffer = io.StringIO()
    writer = csv.writer(buffer, delimiter="\t", lineterminator="\n")
    writer.writerow(["name", *range(1, rows.shape[1] + 1)])
    for name, row in zip(names, rows, strict=True):
        writer.writerow([name, *(f"{number:.9g}" for number in row.tolist())])
        yield buffer.getvalue().encode()
        buffer.seek(0)
        buffer.truncate()


def _parquet(names: Sequence[str], rows: np.ndarray) -> Iterator[bytes]:
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
