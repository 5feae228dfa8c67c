"""Arrays in one file of the safetensors format: the length of a header in 8 bytes, a JSON header, the bytes of the arrays.

The format is written and read here, array by array between the disk and the live arrays: tables of several gigabytes
exist once in memory, and a full disk keeps its errno.
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
CHUNK = 2**22  # bytes that are hashed and written together: they stay in the cache between the two


class Form(TypedDict):
    """What a header says of an array: its dtype, a key of `DTYPES`, and its shape."""

    dtype: str
    shape: list[int]


class Pieced(NamedTuple):
    """An array that exists nowhere as a whole.

    pieces  makes it, from its beginning to its end, as arrays in C order
    """

    dtype: np.dtype
    shape: tuple[int, ...]
    pieces: Callable[[], Iterator[np.ndarray]]

    @property
    def nbytes(self) -> int:
        """Of all pieces."""
        return self.dtype.itemsize * math.prod(self.shape)


class Runs(NamedTuple):
    """Runs of a saved array, and where they go.

    target            a flat array
    saved_at, at, sizes  (N,) where a run begins in the saved array and in the target, and how many numbers it has
    """

    target: np.ndarray
    saved_at: np.ndarray
    at: np.ndarray
    sizes: np.ndarray


Arrays = Mapping[str, np.ndarray]
Written = Mapping[str, np.ndarray | Pieced]
Forms = dict[str, Form]


def forms(arrays: Written) -> Forms:
    """The form of each array. Raises ValueError for a dtype that the format lacks, and for an array not in C order."""
    codes = {np.dtype(dtype): code for code, dtype in DTYPES.items()}
    for name, array in arrays.items():
        if array.dtype not in codes:
            raise ValueError(f"arrays[{name!r}]: found {array.dtype}, expected one of {', '.join(map(str, codes))}")
        if isinstance(array, np.ndarray) and not array.flags.c_contiguous:
            raise ValueError(f"arrays[{name!r}]: found strides {array.strides}, expected C order; copy it first")
    return {name: {"dtype": codes[array.dtype], "shape": list(array.shape)} for name, array in arrays.items()}


def count(forms: Forms) -> int:
    """How many numbers arrays of these forms hold."""
    return sum(math.prod(form["shape"]) for form in forms.values())


def size(forms: Forms) -> int:
    """How many bytes the file of such arrays has. Raises KeyError or TypeError for what is no form."""
    return len(_prefix(forms)) + sum(map(_bytes, forms.values()))


def pieces(forms: Forms, arrays: Written, digest: Any) -> Iterator[memoryview]:
    """The bytes of the file of these arrays, piece by piece; each goes through `digest`, a hash of hashlib, first."""
    ordered = (arrays[name] for name in _in_order(forms))
    parts = (part for array in ordered for part in (array.pieces() if isinstance(array, Pieced) else [array]))
    for raw in itertools.chain([memoryview(_prefix(forms))], map(_raw, parts)):
        for at in range(0, raw.nbytes, CHUNK):
            digest.update(raw[at : at + CHUNK])
            yield raw[at : at + CHUNK]


def empty(forms: Forms) -> dict[str, np.ndarray]:
    """Arrays of these forms, for `read_into`."""
    return {name: np.empty(form["shape"], DTYPES[form["dtype"]]) for name, form in forms.items()}


def read_into(arrays: Arrays, path: Path, forms: Forms) -> None:
    """Read the file at `path`, whose size and forms are known to be right, straight into the arrays."""
    with open(path, "rb") as file:
        file.seek(len(_prefix(forms)))
        for name in _in_order(forms):
            file.readinto(_raw(arrays[name]))


def read_runs(runs: Mapping[str, Runs], path: Path, forms: Forms) -> None:
    """Read the runs of some arrays of the file at `path`; nothing else of it is read."""
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
    """What stands before the arrays: the length of the header, and the header."""
    places: dict[str, dict[str, Any]] = {}
    end = 0
    for name in _in_order(forms):
        begin, end = end, end + _bytes(forms[name])
        places[name] = {**forms[name], "data_offsets": [begin, end]}
    header = json.dumps(places).encode()
    header += b" " * (-len(header) % 8)
    return len(header).to_bytes(8, "little") + header


def _in_order(forms: Forms) -> list[str]:
    """The names in the order of the file: wide items first, so that all lie aligned."""
    return sorted(forms, key=lambda name: (-np.dtype(DTYPES[forms[name]["dtype"]]).itemsize, name))


def _bytes(form: Form) -> int:
    if not all(type(length) is int and length >= 0 for length in form["shape"]):
        raise TypeError(f"shape: found {form['shape']}, expected whole numbers")
    return np.dtype(DTYPES[form["dtype"]]).itemsize * math.prod(form["shape"])


def _raw(array: np.ndarray) -> memoryview:
    return array.reshape(-1).view(np.uint8).data
