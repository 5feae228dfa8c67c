"""The wait policy of kernel threads.

Threads that spin while they wait are the fastest on a quiet machine. If another process occupies a core, they spin through the
time slices of the thread they wait for. A step of 0.5 ms then takes 24 ms. TBB's threads yield early and steal work from late
threads. OpenMP's are limited to short spins, PyTorch's too if it is imported later. A PyTorch that was imported first keeps its
own policy. It could then be limited to hardly any spins only, with which a step of an LSTM took 1.4 times as long on a quiet
machine. `python -m bench busy` measured this choice.
"""

import contextlib
import ctypes
import importlib.metadata
import os
import sys

import numba

SPINS = "3000"  # some tens of microseconds
PARTS = 8
SAID = ("GOMP_SPINCOUNT", "OMP_WAIT_POLICY", "KMP_BLOCKTIME")  # the user's own settings
TBB = {"linux": "libtbb.so.12", "win32": "tbb12.dll"}


def settle() -> None:
    """Sets the wait policy, unless the user has set one. Runtimes read the variable once, when they are loaded."""
    if not any(name in os.environ for name in SAID):
        os.environ["GOMP_SPINCOUNT"] = SPINS
    if os.environ.get("NUMBA_THREADING_LAYER") not in ("omp", "workqueue"):  # every other value allows TBB
        _load_tbb()


def _load_tbb() -> None:
    """Loads the library of the package `tbb`, whose folder is not in the system loader's path."""
    try:
        files = importlib.metadata.files("tbb") or []
    except importlib.metadata.PackageNotFoundError:
        return
    for file in files:
        if file.name == TBB.get(sys.platform):
            try:
                ctypes.CDLL(str(file.locate()), ctypes.RTLD_GLOBAL)
            except OSError:  # not built for this machine: OpenMP is used
                return


def shared(items: int) -> contextlib.AbstractContextManager[None]:
    """A context that splits a parallel loop over `items` into PARTS parts per thread, so that threads steal work.
    For loops whose results do not depend on the partition."""
    chunk = max(1, items // (PARTS * numba.get_num_threads()))
    return numba.parallel_chunksize(chunk)


def enters_together() -> bool:
    """True if several threads may enter kernels at once; under the layer "workqueue" the process would abort."""
    return numba.config.THREADING_LAYER not in ("workqueue", "forksafe") or layer() != "workqueue"


def layer() -> str:
    """Returns the runtime of Numba's threads, "tbb", "omp" or "workqueue"; runs a parallel kernel, which determines it."""
    from cpu.runtime import memory

    memory.read_modify_write(megabytes=1, repeat=1)
    return str(numba.threading_layer())
