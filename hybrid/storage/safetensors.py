"""Arrays in one safetensors file: the header length in 8 bytes, a JSON header, the bytes of the arrays.

The format is read and written here, array by array between disk and live arrays. Tables of several gigabytes are in memory
once, and a full disk keeps its errno.
"""

import itertools
import json
import math
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple, TypedDict

import numpy as np

DTYPES = {"F64": "<f8", "F32": "<f4", "I64": "<i8", "I32": "<i4", "I16": "<i2", "I8": "|i1"}
DTYPES |= {"U64": "<u8", "U32": "<u4", "U16": "<u2", "U8": "|u1", "BOOL": "|b1"}
CHUNK = 2**22  # bytes hashed and written together, so that they stay in cache


class Form(TypedDict):
    """The header entry of an array: its dtype, a key of `DTYPES`, and its shape."""

    dtype: str
    shape: list[int]


class Pieced(NamedTuple):
    """An array that is never in memory as a whole; `pieces` yields it in order, as C-ordered arrays."""

    dtype: np.dtype
    shape: tuple[int, ...]
    pieces: Callable[[], Iterator[np.ndarray]]

    @property
    def nbytes(self) -> int:
        """The total bytes of all pieces."""
        return self.dtype.itemsize * math.prod(self.shape)


class Runs(NamedTuple):
    """Runs of a saved array and their destinations.

    target            a flat array
    saved_at, at, sizes  (N,) start of a run in the saved array, start in the target, and number of elements
    """

    target: np.ndarray
    saved_at: np.ndarray
    at: np.ndarray
    sizes: np.ndarray


Arrays = Mapping[str, np.ndarray]
Written = Mapping[str, np.ndarray | Pieced]
Forms = dict[str, Form]


def forms(arrays: Written) -> Forms:
    """Returns the form of each array. Raises ValueError for an unsupported dtype, and for an array not in C order."""
    codes = {np.dtype(dtype): code for code, dtype in DTYPES.items()}
    for name, array in arrays.items():
        if array.dtype not in codes:
            raise ValueError(f"arrays[{name!r}]: found {array.dtype}, expected one of {', '.join(map(str, codes))}")
        if isinstance(array, np.ndarray) and not array.flags.c_contiguous:
            raise ValueError(f"arrays[{name!r}]: found strides {array.strides}, expected C order; copy it first")
    return {name: {"dtype": codes[array.dtype], "shape": list(array.shape)} for name, array in arrays.items()}


def count(forms: Forms) -> int:
    """Returns the count of numbers in arrays of these forms."""
    return sum(math.prod(form["shape"]) for form in forms.values())


def size(forms: Forms) -> int:
    """Returns the file size in bytes for arrays of these forms. Raises KeyError or TypeError for an invalid form."""
    return len(_prefix(forms)) + sum(map(_bytes, forms.values()))


def pieces(forms: Forms, arrays: Written, digest: Any) -> Iterator[memoryview]:
    """Yields the file's bytes in pieces, after passing each to `digest`, a hash of hashlib."""
    ordered = (arrays[name] for name in _in_order(forms))
    parts = (part for array in ordered for part in (array.pieces() if isinstance(array, Pieced) else [array]))
    for raw in itertools.chain([memoryview(_prefix(forms))], map(_raw, parts)):
        for at in range(0, raw.nbytes, CHUNK):
            digest.update(raw[at : at + CHUNK])
            yield raw[at : at + CHUNK]


def empty(forms: Forms) -> dict[str, np.ndarray]:
    """Returns uninitialised arrays of these forms, for `read_into`."""
    return {name: np.empty(form["shape"], DTYPES[form["dtype"]]) for name, form in forms.items()}


def read_into(arrays: Arrays, path: Path, forms: Forms) -> None:
    """Reads the file at `path`, of verified size and forms, directly into the arrays."""
    with open(path, "rb") as file:
        file.seek(len(_prefix(forms)))
        for name in _in_order(forms):
            file.readinto(_raw(arrays[name]))


def read_runs(runs: Mapping[str, Runs], path: Path, forms: Forms) -> None:
    """Reads only the given runs of some arrays of the file at `path`."""
    with open(path, "rb") as file:
        begin = len(_prefix(forms))
        for name in _in_order(forms):
            if name in runs:
                target, *places = runs[name]
                raw, size = _raw(target), target.itemsize
                for saved_at, at, many in zip(*(place.tolist() for place in places), strict=True):
                    file.seek(begin + size * saved_at)
                    file.readinto(raw[size * at : size * (at + many)])
            begin += _bytes(forms[name])


def _prefix(forms: Forms) -> bytes:
    """Returns the header length and the header, which precede the arrays."""
    places: dict[str, dict[str, Any]] = {}
    end = 0
    for name in _in_order(forms):
        begin, end = end, end + _bytes(forms[name])
        places[name] = {**forms[name], "data_offsets": [begin, end]}
    header = json.dumps(places).encode()
    header += b" " * (-len(header) % 8)
    return len(header).to_bytes(8, "little") + header


def _in_order(forms: Forms) -> list[str]:
    """Returns the names in file order: largest item size first, so that all are aligned."""
    return sorted(forms, key=lambda name: (-np.dtype(DTYPES[forms[name]["dtype"]]).itemsize, name))


def _bytes(form: Form) -> int:
    if not all(type(length) is int and length >= 0 for length in form["shape"]):
        raise TypeError(f"shape: found {form['shape']}, expected whole numbers")
    return np.dtype(DTYPES[form["dtype"]]).itemsize * math.prod(form["shape"])


def _raw(array: np.ndarray) -> memoryview:
    return array.reshape(-1).view(np.uint8).data
