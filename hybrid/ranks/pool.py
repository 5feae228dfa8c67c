"""Tasks that rank 0 hands to the other ranks."""

import contextlib
import signal
from collections.abc import Iterator
from concurrent.futures import Executor
from typing import Any

from .world import world


@contextlib.contextmanager
def pool() -> Iterator[Executor | None]:
    """What performs the tasks that rank 0 submits; the others perform them as they enter, and have None when that is over.

    A task is a function that other processes can import, and plain values. Launchers send signals to all ranks: in the
    others nothing comes of them, since rank 0 says when it is over.
    """
    from mpi4py import MPI
    from mpi4py.futures import MPICommExecutor

    if world().rank > 0:
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, lambda *_: None)  # not ignored, or a child would ignore it too
    performing: Any = MPICommExecutor(MPI.COMM_WORLD.Dup(), root=0)
    with performing as executor:
        yield executor
