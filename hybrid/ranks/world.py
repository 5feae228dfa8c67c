"""Which ranks this run has, and which of them this process is."""

import importlib.util
import os
import platform
from typing import NamedTuple

from ..processors import affinity

VARIABLES = ("PMI_RANK", "PMIX_RANK", "OMPI_COMM_WORLD_RANK")  # of MPICH, of Slurm's PMIx and Open MPI, of Open MPI
WANTED = "pip install 'hybrid-engine[mpi]'"


class World(NamedTuple):
    """The ranks of a run, as one of them sees them.

    rank        which one this process is: 0 to size - 1
    size        how many there are
    host        the name of the machine that this rank runs on
    local_rank  which of the ranks on that machine it is
    mpi         whether MPI started it
    sharing     how many of the ranks on that machine may use the cores that this one may use: 1 where the launcher gave
                each rank cores of its own
    turn        which of those it is
    began       the number that it began with, where ranks have been lost since
    least       down to how many ranks the others go on when some are lost; None: then all are ended
    """

    rank: int
    size: int
    host: str
    local_rank: int
    mpi: bool
    sharing: int = 1
    turn: int = 0
    began: int | None = None
    least: int | None = None

    @property
    def number(self) -> int:
        """The number that it began with."""
        return self.rank if self.began is None else self.began

    @property
    def name(self) -> str:
        """What messages call this rank."""
        return f"rank {self.number} on {self.host}"


_current: World | None = None


def launched() -> bool:
    """Whether a launcher of MPI started this process. MPI itself is neither imported nor initialised for it."""
    return any(name in os.environ for name in VARIABLES)


def world() -> World:
    """The ranks of MPI where a launcher started this process, else a world of one, for which mpi4py is not imported.

    Importing mpi4py initialises MPI, and the first call in a world of MPI is made by all of its ranks. Where mpi4py is not
    installed, a process is a world of one too, since batch systems set the same variables for programs without MPI.
    """
    return _current or become(found())


def become(this: World) -> World:
    """From now on, this is the world."""
    global _current
    _current = this
    return this


def found() -> World:
    """The world that the launcher made."""
    if not launched() or importlib.util.find_spec("mpi4py") is None:
        return World(0, 1, platform.node(), 0, False)
    from mpi4py import MPI

    everyone = MPI.COMM_WORLD
    here = everyone.Split_type(MPI.COMM_TYPE_SHARED)
    local, cores = here.rank, affinity()
    alike = [rank for rank, other in enumerate(here.allgather(cores)) if other == cores]
    here.Free()
    return World(everyone.rank, everyone.size, platform.node(), local, True, len(alike), alike.index(local))
