"""What the MPI of this environment is and can do. `python -m hybrid.ranks.library` prints it as JSON."""

import ctypes
import json
import subprocess
import sys
from typing import Any

from .world import launched

LEVELS = ("single", "funneled", "serialized", "multiple")


def ask(limit: float = 20.0) -> dict[str, Any]:
    """`describe`, in a process of its own where this one is no rank: an MPI that is broken ends whoever initialises it.

    limit  seconds after which a process that does not answer is ended

    Raises OSError, with the last line of what it said, where it does not describe itself.
    """
    if launched():
        return describe()
    command = [sys.executable, "-m", "hybrid.ranks.library"]
    try:
        done = subprocess.run(command, capture_output=True, text=True, errors="replace", timeout=limit, check=True)
    except subprocess.TimeoutExpired as error:
        raise OSError(f"it does not answer within {limit:g} s") from error
    except subprocess.CalledProcessError as error:
        said = error.stderr.strip().splitlines()
        raise OSError(said[-1] if said else f"it ends with code {error.returncode}") from error
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def describe() -> dict[str, Any]:
    """What MPI says of itself; initialises it.

    name      of the library, with its version
    standard  the version of the standard that it keeps, such as "5.0"
    threads   which threads may call it: "single", "funneled", "serialized" or "multiple"
    survives  whether the ranks that are left may go on when one ends (ULFM: revoke and shrink)
    cuda      whether it takes arrays in a CUDA device's memory
    """
    from mpi4py import MPI

    levels = (MPI.THREAD_SINGLE, MPI.THREAD_FUNNELED, MPI.THREAD_SERIALIZED, MPI.THREAD_MULTIPLE)
    name = MPI.Get_library_version().strip("\0 ").split("\n")[0].split(",")[0]
    return {
        "name": " ".join(name.replace("Version:", "").split()),
        "standard": ".".join(map(str, MPI.Get_version())),
        "threads": LEVELS[levels.index(MPI.Query_thread())],
        "survives": _survives(MPI),
        "cuda": _cuda(MPI),
    }


def _survives(mpi: Any) -> bool:
    """Whether a communicator can be revoked: a group of one tries."""
    own = mpi.COMM_SELF.Dup()
    try:
        own.Revoke()
        return bool(own.Is_revoked())
    except (NotImplementedError, mpi.Exception):
        return False
    finally:
        own.Free()


def _cuda(mpi: Any) -> bool:
    """By what MPI 4.1 says of the kinds of memory; by the function of Open MPI and MPICH, where the library has it."""
    info = mpi.COMM_WORLD.Get_info()
    kinds = info.get("mpi_memory_alloc_kinds") or ""
    info.Free()
    if any(kind.split(":")[0] == "cuda" for kind in kinds.split(",")):
        return True
    try:
        asked = ctypes.CDLL(mpi.__file__).MPIX_Query_cuda_support  # found in the library that this module is linked to
    except (AttributeError, OSError):
        return False
    return bool(asked())


if __name__ == "__main__":
    print(json.dumps(describe()))
