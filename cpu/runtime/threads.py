"""How the threads of kernels wait for work.

Threads that spin while they wait are the fastest on a quiet machine; where another process has one of their cores, they spin
through time slices in which the thread that they wait for could run, and a step of half a millisecond takes 24. TBB's threads
give their core away soon and take over what a late thread has not begun; OpenMP's are told to spin for a short time only, and
PyTorch's in the same process too, whichever is imported first. `python -m bench busy` is the table that this was chosen by.
"""

import contextlib
import ctypes
import importlib.metadata
import os
import sys
import threading
from pathlib import Path

import numba

SPINS = "3000"  # some tens of microseconds
PARTS = 8
SAID = ("GOMP_SPINCOUNT", "OMP_WAIT_POLICY", "KMP_BLOCKTIME")  # how a user says otherwise
TBB = {"linux": "libtbb.so.12", "win32": "tbb12.dll"}


def settle() -> None:
    """Choose how threads wait, unless the user has chosen. Runtimes read the variable once, when they are loaded."""
    if not any(name in os.environ for name in SAID):
        os.environ["GOMP_SPINCOUNT"] = SPINS
        for runtime in _loaded():
            _calm(runtime)
    if os.environ.get("NUMBA_THREADING_LAYER") not in ("omp", "workqueue"):  # of its other values each can be TBB
        _load_tbb()


def _load_tbb() -> None:
    """Load the library of the package `tbb`: Numba would not find it, since the system's loader does not search its folder."""
    try:
        files = importlib.metadata.files("tbb") or []
    except importlib.metadata.PackageNotFoundError:
        return
    for file in files:
        if file.name == TBB.get(sys.platform):
            try:
                ctypes.CDLL(str(file.locate()), ctypes.RTLD_GLOBAL)
            except OSError:  # not for this machine: OpenMP it is
                return


def _loaded() -> list[str]:
    """The OpenMP runtimes of this process, such as that of a PyTorch which was imported earlier."""
    try:
        lines = Path("/proc/self/maps").read_text().splitlines()
    except OSError:  # not Linux
        return []
    paths = {line.split(maxsplit=5)[-1] for line in lines if "/" in line}
    return sorted(path for path in paths if Path(path).name.startswith(("libgomp", "libiomp5", "libomp")))


def _calm(path: str) -> None:
    """Have a runtime that is loaded already spin for a short time only.

    LLVM's and Intel's have a call for it. GNU's has none, but spins very little while it has more threads than cores: so it is
    given as many that sleep, in a team of their own, which lasts as long as the thread that made it.
    """
    runtime = ctypes.CDLL(path, os.RTLD_NOLOAD)
    if hasattr(runtime, "kmp_set_blocktime"):
        runtime.kmp_set_blocktime(0)
        return
    ready = threading.Event()

    def hold() -> None:
        nothing = ctypes.cast(ctypes.CDLL(None).free, ctypes.c_void_p)  # of the pointer None: does nothing
        runtime.GOMP_parallel(nothing, None, ctypes.c_uint((os.cpu_count() or 1) + 1), ctypes.c_uint(0))
        ready.set()
        threading.Event().wait()

    import resource

    # Where memory for stacks is limited GNU's runtime ends the process: it cannot make a thread.
    space, data = (resource.getrlimit(kind)[0] for kind in (resource.RLIMIT_AS, resource.RLIMIT_DATA))
    if space == resource.RLIM_INFINITY and (data == space or data >= 4 << 30):
        threading.Thread(target=hold, name="omp-sleepers", daemon=True).start()
        ready.wait()


def shared(items: int) -> contextlib.AbstractContextManager[None]:
    """A context in which a parallel loop over so many items is cut into PARTS parts for each thread, so that other threads can
    take over what a late one has not begun. For loops whose results do not depend on the cut.
    """
    chunk = max(1, items // (PARTS * numba.get_num_threads()))
    context: contextlib.AbstractContextManager[None] = numba.parallel_chunksize(chunk)
    return context


def enters_together() -> bool:
    """Whether several threads may enter kernels at once: the layer "workqueue" would end the process."""
    return numba.config.THREADING_LAYER not in ("workqueue", "forksafe") or layer() != "workqueue"


def layer() -> str:
    """The runtime of Numba's threads, "tbb", "omp" or "workqueue": known after a parallel kernel has run."""
    from cpu.runtime import memory

    memory.read_modify_write(megabytes=1, repeat=1)
    return str(numba.threading_layer())
