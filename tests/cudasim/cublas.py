"""The simulated cuBLAS: built from cublas.cpp when that has changed, and offered to gpu/blas.py in HYBRID_CUBLAS."""

import ctypes
import functools
import hashlib
import os
import subprocess
import tempfile
from pathlib import Path

from tests import cudasim

SOURCE = cudasim.HERE / "cublas.cpp"


def library() -> Path:
    """The library, built where there is none of this content. Several processes may build it at once."""
    compiler = [os.environ.get("CXX", "g++"), "-std=c++17", "-O2", "-g1", "-fPIC", "-shared", "-Wall", "-Wextra"]
    state = hashlib.sha256(" ".join(compiler).encode() + SOURCE.read_bytes())
    path = cudasim.CACHE / state.hexdigest()[:16] / "libcublas_sim.so"
    if not path.exists():
        path.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=path.parent) as folder:
            made = Path(folder) / path.name
            subprocess.run([*compiler, "-o", str(made), str(SOURCE)], check=True)
            os.replace(made, path)
    return path


def use() -> None:
    """Let gpu/blas.py find it; after cudasim.start(), whose driver it calls, and before the first product."""
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
