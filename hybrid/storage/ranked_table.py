"""A table of what was found for many, a row for each find, written part by part: CSV, or Parquet by row groups."""

import csv
import io
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from ..use.ranked import Ranked
from . import atomic

FORMATS = ("csv", "parquet")


def format_of(path: str | Path) -> str:
    """The format that the end of a file's name says; ValueError for another, and for Parquet where pyarrow is missing."""
    ending = Path(path).suffix.lower().removeprefix(".")
    if ending not in FORMATS:
        raise ValueError(f"{path}: expected a name that ends with .csv or .parquet")
    if ending == "parquet":
        _pyarrow(path)
    return ending


def write(path: str | Path, parts: Iterable[Ranked], columns: Sequence[str]) -> int:
    """Write the rows of all parts (see `Ranked.rows`) under the names of four columns; returns how many rows.

    A part is written before the next is asked for. The file appears whole or, on any error, stays as it was; raises as
    `format_of`, OSError for a file that cannot be written, and what the parts raise.
    """
    counted = _Counted(parts)
    atomic.write(path, {"csv": _csv, "parquet": _parquet}[format_of(path)](counted, columns))
    return counted.rows


class _Counted:
    """Parts, and how many rows they had."""

    def __init__(self, parts: Iterable[Ranked]):
        self._parts, self.rows = parts, 0

    def __iter__(self) -> Iterator[Ranked]:
        for part in self._parts:
            self.rows += int((part.ids >= 0).sum())
            yield part


def _csv(parts: Iterable[Ranked], columns: Sequence[str]) -> Iterator[bytes]:
    buffer = io.StringIO()
    writer = csv.writer(buffer, lineterminator="\n")
    writer.writerow(columns)
    for part in parts:
        writer.writerows((asked, rank, name, f"{score:.9g}") for asked, rank, name, score in part.rows())
        yield _taken(buffer)
    yield _taken(buffer)  # the header, where there was no part


def _taken(buffer: io.StringIO) -> bytes:
    data = buffer.getvalue().encode()
    buffer.seek(0)
    buffer.truncate()
    return data


class _Sink(io.RawIOBase):
    """A file that keeps what is written to it until it is taken."""

    def __init__(self) -> None:
        self._pieces: list[bytes] = []
        self._at = 0

    def writable(self) -> bool:
        return True

    def tell(self) -> int:
        return self._at

    def write(self, data: object) -> int:
        self._pieces.append(bytes(data))  # type: ignore[call-overload]  # any buffer
        self._at += len(self._pieces[-1])
        return len(self._pieces[-1])

    def taken(self) -> bytes:
        """What was written since this was asked last."""
        data, self._pieces = b"".join(self._pieces), []
        return data


def _parquet(parts: Iterable[Ranked], columns: Sequence[str]) -> Iterator[bytes]:
    pyarrow, parquet = _pyarrow("parquet")
    types = (pyarrow.string(), pyarrow.int32(), pyarrow.string(), pyarrow.float32())
    schema = pyarrow.schema(list(zip(columns, types, strict=True)))
    sink = _Sink()
    known: Any = None
    names: Any = None
    with parquet.ParquetWriter(sink, schema) as writer:
        for part in parts:
            if part.known is not known:  # once, where parts are of one answer
                known, names = part.known, pyarrow.array(part.known, types[2])
            row, place = np.nonzero(part.ids >= 0)
            asked = pyarrow.array(part.asked, types[0]).take(pyarrow.array(row))
            found = names.take(pyarrow.array(part.ids[row, place]))
            scores = pyarrow.array(part.scores[row, place])
            ranks = pyarrow.array((place + 1).astype(np.int32))
            writer.write_table(pyarrow.table([asked, ranks, found, scores], schema=schema))
            yield sink.taken()
    yield sink.taken()


def _pyarrow(path: str | Path) -> tuple[Any, Any]:
    try:
        import pyarrow
        from pyarrow import parquet
    except ImportError:
        raise ValueError(
            f"{path}: written with pyarrow, which is missing; pip install pyarrow, or name a .csv"
        ) from None
    return pyarrow, parquet
