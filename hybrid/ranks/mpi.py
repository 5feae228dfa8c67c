"""How ranks begin and end: by the mpiexec of MPI, and by mpi4py, which ends all of them where one raises an exception."""

import importlib.util
import shutil
import subprocess
import sys
import time
from pathlib import Path

from .world import WANTED


def mpiexec() -> str | None:
    """The mpiexec beside the library that mpi4py loads, else that of PATH; None where there is none, or no mpi4py."""
    if importlib.util.find_spec("mpi4py") is None:
        return None
    command = [sys.executable, "-m", "mpi4py", "--mpi-library"]
    library = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True).stdout.strip()
    beside = Path(library).parent.parent / "bin" / "mpiexec"
    return str(beside) if library and beside.exists() else shutil.which("mpiexec")


def command(ranks: int, module: str, *arguments: str) -> list[str]:
    """What starts `python -m MODULE ARGUMENTS` as several ranks. Raises ValueError without MPI."""
    program = mpiexec()
    if program is None:
        raise ValueError(f"launch: mpi4py or mpiexec was not found; to start ranks: {WANTED}")
    return [program, "-n", str(ranks), sys.executable, "-m", "mpi4py", "-m", module, *arguments]


def finalised(limit: float) -> bool:
    """Whether all ranks come within so many seconds; then MPI is finalised, and each may have an exit code of its own."""
    from mpi4py import MPI

    come, end = MPI.COMM_WORLD.Ibarrier(), time.monotonic() + limit
    while not come.Test():
        if time.monotonic() > end:
            return False
        time.sleep(0.01)
    MPI.Finalize()
    return True


def abort(code: int) -> None:
    """End all ranks."""
    from mpi4py import MPI

    time.sleep(0.1)  # in which mpiexec reads what ranks have said
    MPI.COMM_WORLD.Abort(code)
