"""Commands on several ranks: support checks, output, threads and exit of a rank."""

import argparse
import contextlib
import math
import os
import sys
import traceback
from collections.abc import Sequence
from typing import TYPE_CHECKING

from .. import console, machine
from ..settings import MODELS
from . import options
from .arguments import kind_of

if TYPE_CHECKING:
    from ..mpi.world import World

GRACE = 5.0  # seconds for the other ranks to end as well, if they fail alike


def this_rank() -> "World | None":
    """Returns the MPI world of this process; None, without an import of MPI, for a single process."""
    if not machine.launched():
        return None
    from ..mpi.world import world

    return world() if world().size > 1 else None


def group() -> machine.SingleRank:
    """Returns the group of ranks that train together."""
    if this_rank() is None:
        return machine.SingleRank()
    from ..mpi.group import Group

    return Group()


def check(given: argparse.Namespace, ranks: int) -> None:
    """Raises ValueError if a command does not support this many ranks. For `train`, the model's module decides."""
    if ranks == 1:
        return
    what = f"`hybrid {given.command}`"
    if given.command == "train":
        kind = given.kind or (kind_of(given.resume) if given.resume else None)
        if kind is None or getattr(MODELS.load(kind), "RANKS", False):  # None: `train` itself reports the error
            return
        what = f"the model {kind}"
    raise ValueError(f"-n: found {ranks} ranks, but {what} runs on one rank; take -n 1, or leave out `launch`")


def read(arguments: Sequence[str]) -> argparse.Namespace:
    """Parses a command line; from here on only rank 0 prints to stdout."""
    this = this_rank()
    if this and this.rank:
        sys.stdout = open(os.devnull, "w")
        with contextlib.redirect_stderr(sys.stdout):
            return options.read(arguments)
    return options.read(arguments)


def begin(given: argparse.Namespace, this: "World | None") -> None:
    """Sets up this rank: rejects single-rank commands, mutes all ranks except 0, and divides shared cores by default."""
    if this is None:
        return
    from ..mpi.world import take_threads

    check(given, this.size)
    console.mute = this.rank > 0
    take_threads(this)


def end(code: int, message: str = "") -> int:
    """Returns the exit code once all ranks have ended, else aborts all; message: the error, which rank 0 prints if all fail."""
    this = this_rank()
    if message and not (this and this.rank):
        console.tell(message)
    if this is None:
        return code
    from ..mpi.world import abort, finalised

    if not finalised(GRACE if code else math.inf):
        if message and this.rank:
            console.tell(f"{this.name}: {message}")
        abort(code)
    return code


def fail() -> None:
    """Aborts all ranks after an error without a user message; does nothing on a single rank."""
    if (this := this_rank()) is None:
        return
    from ..mpi.world import abort

    traceback.print_exc()
    console.tell(f"{this.name} ended all ranks")
    abort(1)  # here: its threads may wait for other ranks, and the interpreter would wait for them
