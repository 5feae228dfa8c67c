"""The zips of the CUDA original's checkpoints: members read whole, within bounds, their pickles as data."""

import struct
import zipfile
import zlib
from pathlib import Path
from typing import Any

import numpy as np

from ... import check
from .pickles import unpickled

SMALL = 2**20  # bytes of a member that holds a few words and numbers


class Members:
    """The members of a zip, each read whole and within bounds; `disk` is its size as it lies there."""

    def __init__(self, path: Path):
        self.disk = path.stat().st_size
        try:
            self._zip = zipfile.ZipFile(path)
        except (zipfile.BadZipFile, NotImplementedError, ValueError, struct.error) as error:
            raise ValueError(
                f"{path}: found no whole zip ({error}), expected Sim_<name>_<id>_<step>.zip as PVM_cuda saves it"
            ) from error

    def __enter__(self) -> "Members":
        return self

    def __exit__(self, *error: object) -> None:
        self._zip.close()

    def have(self, prefix: str) -> bool:
        """Whether there is a member whose name begins so."""
        return any(name.startswith(prefix) for name in self._zip.namelist())

    def size(self, name: str) -> int:
        """The bytes that a member is said to hold."""
        return self._info(name).file_size

    def value(self, name: str, most: int = SMALL) -> Any:
        """The value of a pickle of at most so many bytes."""
        return unpickled(name, self._bytes(name, most))

    def array(self, name: str, count: int, dtype: Any = np.float32) -> np.ndarray:
        """A read-only array of so many finite numbers."""
        meta = self.value(f"{name}.meta", 4096)
        if type(meta) is not list or len(meta) != 2 or type(meta[0]) is not tuple or not isinstance(meta[1], np.dtype):
            raise ValueError(f"{name}.meta: found a {type(meta).__name__}, expected a list of shape and dtype")
        if any(type(length) is not int for length in meta[0]):
            raise ValueError(f"{name}.meta: found a shape of other than whole numbers, expected ({count},)")
        refuse_form(f"{name}.meta", meta[0], meta[1], count, dtype)
        expected = count * np.dtype(dtype).itemsize
        data = self._bytes(name, expected)
        if len(data) != expected:
            raise ValueError(f"{name}: found {len(data)} bytes, expected {expected}")
        values = np.frombuffer(data, dtype)
        check.finite(name, values)
        return values

    def _info(self, name: str) -> zipfile.ZipInfo:
        try:
            return self._zip.getinfo(name)
        except KeyError:
            raise ValueError(f"{name}: missing; expected a checkpoint as PVM_cuda saves it") from None

    def _bytes(self, name: str, most: int) -> bytes:
        """`zipfile` gives no more than the size that a member says it has, whatever it unpacks to."""
        info = self._info(name)
        if info.file_size > most:
            raise ValueError(f"{name}: found {info.file_size} bytes, expected at most {most}")
        if info.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED) or info.flag_bits & 1:
            raise ValueError(f"{name}: found it encrypted or compressed otherwise, expected deflated")
        try:
            data = self._zip.read(info)
        except (zipfile.BadZipFile, zlib.error, EOFError, OSError, struct.error, NotImplementedError) as error:
            why = str(error) or type(error).__name__
            raise ValueError(f"{name}: found it damaged ({why}), expected a whole file; copy it again") from error
        if len(data) != info.file_size:
            raise ValueError(f"{name}: found it truncated, {len(data)} bytes, expected {info.file_size}")
        return data


def refuse_form(name: str, shape: Any, dtype: Any, count: int, expected: Any) -> None:
    """ValueError unless an array has this dtype and so many numbers."""
    if shape != (count,) or dtype != expected:
        form = f"{np.dtype(expected)} ({count},)"
        raise ValueError(f"{name}: found {dtype} {shape}, expected {form}, as the specs ask for")
