"""Which commands run on several ranks, what a rank says and takes of its machine, and how it ends."""

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

GRACE = 5.0  # seconds in which the other ranks end too, where they fail alike


def this_rank() -> "World | None":
    """The ranks of this run, as this process sees them; None, and nothing of MPI is imported, where it is alone."""
    if not machine.launched():
        return None
    from ..mpi.world import world

    return world() if world().size > 1 else None


def group() -> machine.SingleRank:
    """The ranks that train together."""
    if this_rank() is None:
        return machine.SingleRank()
    from ..mpi.group import Group

    return Group()


def check(given: argparse.Namespace, ranks: int) -> None:
    """ValueError where a command is to run on more ranks than it can. `train` can where the model's file says so."""
    if ranks == 1:
        return
    what = f"`hybrid {given.command}`"
    if given.command == "train":
        kind = given.kind or (kind_of(given.resume) if given.resume else None)
        if kind is None or getattr(MODELS.load(kind), "RANKS", False):  # None: `train` itself says what is wrong
            return
        what = f"the model {kind}"
    raise ValueError(
        f"-n: found {ranks} ranks, but {what} runs on one rank; take -n 1, or leave out `launch -n {ranks}`"
    )


def read(arguments: Sequence[str]) -> argparse.Namespace:
    """What a command line says; rank 0 prints for all, from here on."""
    this = this_rank()
    if this and this.rank:
        sys.stdout = open(os.devnull, "w")
        with contextlib.redirect_stderr(sys.stdout):
            return options.read(arguments)
    return options.read(arguments)


def begin(given: argparse.Namespace, this: "World | None") -> None:
    """Be this rank: refuse what runs on one rank alone, let rank 0 speak for all, and take no core that is another's.

    Where ranks share their cores, each has as many threads as its share, unless options or environment say how many.
    """
    if this is None:
        return
    from ..mpi.world import take_threads

    check(given, this.size)
    console.mute = this.rank > 0
    take_threads(this)


def end(code: int, said: str = "") -> int:
    """The exit code of this rank, when all have come to their end. Where one has failed and others do not come, all end.

    said  why it failed; where all have failed, rank 0 says it
    """
    this = this_rank()
    if said and not (this and this.rank):
        console.tell(said)
    if this is None:
        return code
    from ..mpi.world import abort, finalised

    if not finalised(GRACE if code else math.inf):
        if said and this.rank:
            console.tell(f"{this.name}: {said}")
        abort(code)
    return code


def fail() -> None:
    """End all ranks after an error that has no message for a user; alone, do nothing."""
    if (this := this_rank()) is None:
        return
    from ..mpi.world import abort

    traceback.print_exc()
    console.tell(f"{this.name} ended all ranks")
    abort(1)  # here: its threads may wait for other ranks, and the interpreter would wait for them
