"""The simulated cuBLAS: built from cublas.cpp when that has changed, and offered to gpu/runtime/blas.py in HYBRID_CUBLAS."""

import ctypes
import functools
import os
from pathlib import Path

from tests import cudasim

SOURCE = cudasim.HERE / "cublas.cpp"


def library() -> Path:
    """The library, built when its source has changed."""
    return cudasim.build("libcublas_sim.so", [SOURCE])


def use() -> None:
    """Let gpu/runtime/blas.py find it; after cudasim.start(), whose driver it calls, and before the first product."""
    cudasim.start()
    os.environ["HYBRID_CUBLAS"] = str(library())


@functools.cache
def _opened() -> ctypes.CDLL:
    return ctypes.CDLL(str(library()))


def handles() -> int:
    """Handles that have been made and not destroyed."""
    return _opened().cublassim_handles()


def careless() -> int:
    """Products so far that ran in the library's own workspace, which streams share."""
    return _opened().cublassim_careless()
