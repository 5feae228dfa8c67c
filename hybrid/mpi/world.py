"""The ranks of this run, the rank of this process, and its part of the machine's processors."""

import atexit
import functools
import importlib.util
import os
import platform
import shutil
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any, NamedTuple

from .. import console
from ..machine import affinity, allowed, launched

WANTED = "pip install 'hybrid-engine[mpi]'"


class World(NamedTuple):
    """The ranks of a run, as one of them sees them.

    rank        which one this process is: 0 to size - 1
    size        how many there are
    host        the name of the machine that this rank runs on
    local_rank  which of the ranks on that machine it is
    sharing     how many of the ranks on that machine may use the cores that this one may use: 1 where the launcher gave
                each rank cores of its own
    """

    rank: int
    size: int
    host: str
    local_rank: int = 0
    sharing: int = 1

    @property
    def name(self) -> str:
        """The name of this rank in messages."""
        return f"rank {self.rank} on {self.host}"


@functools.cache
def world() -> World:
    """The ranks of MPI where a launcher started this process, else a world of one, for which mpi4py is not imported.

    Importing mpi4py initialises MPI, and the first call in a world of MPI is made by all of its ranks. Where mpi4py is not
    installed, a process is a world of one too, since batch systems set the same variables for programs without MPI.
    """
    if not launched() or importlib.util.find_spec("mpi4py") is None:
        return World(0, 1, platform.node())
    from mpi4py import MPI

    every = MPI.COMM_WORLD
    here = every.Split_type(MPI.COMM_TYPE_SHARED)
    local, cores = here.rank, affinity()
    alike = here.allgather(cores).count(cores)
    here.Free()
    return World(every.rank, every.size, platform.node(), local, alike)


def take_threads(this: World) -> None:
    """Let this rank take its part of the threads by default: as OMP_NUM_THREADS, which PyTorch and BLAS read too.

    What the user has set stays, for each rank. Call it before Numba or PyTorch is imported.
    """
    if this.sharing > 1:
        os.environ.setdefault("OMP_NUM_THREADS", str(max(1, allowed() // this.sharing)))


# How ranks begin and end: by the mpiexec of MPI, and by mpi4py, which ends all of them where one raises an exception.


def mpiexec() -> str | None:
    """The mpiexec beside the library that mpi4py loads, else that of PATH; None where there is none, or no mpi4py."""
    if importlib.util.find_spec("mpi4py") is None:
        return None
    command = [sys.executable, "-m", "mpi4py", "--mpi-library"]
    library = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True).stdout.strip()
    beside = Path(library).parent.parent / "bin" / "mpiexec"
    return str(beside) if library and beside.exists() else shutil.which("mpiexec")


def command(ranks: int, module: str, *arguments: str, hosts: str | None = None) -> list[str]:
    """Returns the command that starts `python -m MODULE ARGUMENTS` as several ranks. Raises ValueError without MPI.

    hosts  a host file of MPICH, whose machines the ranks run on; None: this machine
    """
    program = mpiexec()
    if program is None:
        raise ValueError(f"launch: mpi4py or mpiexec was not found; to start ranks: {WANTED}")
    where = ["-f", hosts] if hosts else []
    return [program, *where, "-n", str(ranks), sys.executable, "-m", "mpi4py", "-m", module, *arguments]


def finalised(limit: float) -> bool:
    """True if all ranks arrive within so many seconds; then MPI is finalised, and each may have its own exit code."""
    from mpi4py import MPI

    come, end = MPI.COMM_WORLD.Ibarrier(), time.monotonic() + limit
    while not come.Test():
        if time.monotonic() > end:
            return False
        time.sleep(0.01)
    if watching:
        watching.stop()
    MPI.Finalize()
    return True


def abort(code: int) -> None:
    """End all ranks."""
    from mpi4py import MPI

    time.sleep(0.1)  # in which mpiexec reads the output of the ranks
    MPI.COMM_WORLD.Abort(code)
    os._exit(code)  # it returns where the launcher cannot be reached


# Hosts that fall silent. mpiexec reports the death of a process, but not that of a machine or of a cable.

BEAT = 1.0  # seconds between two messages, fewer where the patience is short


class Watch(threading.Thread):
    """A thread that ends all ranks if a host is silent for some seconds: rank 0 hears one rank of each host, and they hear it.

    patience  seconds, more than any rank holds Python's global lock
    """

    def __init__(self, patience: float):
        super().__init__(name="watch of hosts", daemon=True)
        from mpi4py import MPI

        self._patience, self._over = patience, threading.Event()
        every = MPI.COMM_WORLD
        first = every.Split(0 if world().local_rank == 0 else MPI.UNDEFINED, every.rank)
        self._comm: Any = None if first == MPI.COMM_NULL else first
        names = first.allgather(platform.node()) if self._comm else []
        heard = range(1, len(names)) if self._comm and first.rank == 0 else [0]
        self._names = {rank: names[rank] for rank in heard} if len(names) > 1 else {}

    def run(self) -> None:
        """Sends and hears until `stop`, a last message from all, or a silence."""
        if not self._names:
            return
        beats = {rank: bytearray(1) for rank in self._names}
        coming = {rank: self._comm.Irecv(beat, rank) for rank, beat in beats.items()}
        last, going = dict.fromkeys(beats, time.monotonic()), dict[int, Any]()
        while coming and not self._over.wait(min(BEAT, self._patience / 5)):
            for rank in [rank for rank in coming if rank not in going or going[rank].Test()]:
                going[rank] = self._comm.Isend(b"1", rank)
            for rank in [rank for rank, request in coming.items() if request.Test()]:
                last[rank] = time.monotonic()
                if beats[rank] == b"0":
                    del coming[rank]
                else:
                    coming[rank] = self._comm.Irecv(beats[rank], rank)
            for rank in coming:
                if time.monotonic() - last[rank] > self._patience:
                    console.tell(
                        f"{world().name}: error: {self._names[rank]} has been silent for {self._patience:g} s; all ranks are "
                        "ended, and the last save remains: train --resume DIR continues on other hosts"
                    )
                    abort(1)
        for rank in beats:
            self._comm.Isend(b"0", rank).Wait()
        for request in coming.values():
            request.Cancel()
            request.Free()

    def stop(self) -> None:
        """Says so to the other hosts, which expect nothing more from this one."""
        self._over.set()
        if self.is_alive():
            self.join()


watching: Watch | None = None


def watch() -> None:
    """Starts to watch the other hosts; all ranks call it. HYBRID_PATIENCE: the seconds of silence allowed, 0: any."""
    global watching
    text = os.environ.get("HYBRID_PATIENCE", "60")
    try:
        patience = float(text)
    except ValueError:
        raise ValueError(f"HYBRID_PATIENCE: found {text!r}, expected seconds, or 0 for any silence") from None
    if watching is None and patience > 0:
        watching = Watch(patience)
        watching.start()
        atexit.register(watching.stop)
