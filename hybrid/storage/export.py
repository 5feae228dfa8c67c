"""Vectors in a file for other programs: in word2vec's two formats, whose names have no white space, or in one of three more."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from . import atomic, vector_tables, vectors

FORMATS = ("text", "binary", "npz", "tsv", "parquet")  # the first two are word2vec's


def format_of(path: str | Path, named: str | None = None) -> str:
    """The format of a file: `named`, where that is given; else by the path's suffix (.npz, .tsv, .parquet), else "text"."""
    ending = Path(path).suffix.lower().removeprefix(".")
    return named or (ending if ending in FORMATS[2:] else "text")


def write(path: str | Path, names: Sequence[str], rows: np.ndarray, format: str) -> None:
    """Write names and their vectors. The file appears whole or, on any error, stays as it was.

    names   V strings
    rows    (V, D) floats, written as float32; every format keeps every bit of them
    format  "text" or "binary": those of word2vec
            "npz": arrays `names` (V,) and `vectors` (V, D), for numpy.load
            "tsv": a header, then a line for each name, which is quoted as in CSV where it holds a tab, a quote or a line end
            "parquet": columns `name` and `vector`; needs pyarrow

    Raises ValueError for what a format cannot hold, and where pyarrow is missing; OSError for a file that cannot be written.
    """
    if format in FORMATS[:2]:
        vectors.save(path, names, rows, binary=format == "binary")
        return
    rows = vectors.check(names, rows)
    atomic.write(path, vector_tables.WRITERS[format](names, rows))
