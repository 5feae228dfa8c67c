"""Which commands run on several ranks, what a rank says and takes of its machine, and how it ends."""

import argparse
import contextlib
import math
import os
import sys
from collections.abc import Sequence

from .. import console
from ..models import MODELS
from ..mpi.world import World, abort, finalised, take_threads, world
from . import options
from .arguments import kind_of

GRACE = 5.0  # seconds in which the other ranks end too, where they fail alike


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
    if world().rank:
        sys.stdout = open(os.devnull, "w")
        with contextlib.redirect_stderr(sys.stdout):
            return options.read(arguments)
    return options.read(arguments)


def begin(given: argparse.Namespace, this: World) -> None:
    """Be this rank: refuse what runs on one rank alone, let rank 0 speak for all, and take no core that is another's.

    Where ranks share their cores, each has as many threads as its share, unless options or environment say how many.
    """
    check(given, this.size)
    console.mute = this.rank > 0
    take_threads(this)


def end(code: int, said: str = "") -> int:
    """The exit code of this rank, when all have come to their end. Where one has failed and others do not come, all end.

    said  why it failed; where all have failed, rank 0 says it
    """
    this = world()
    if said and this.rank == 0:
        console.tell(said)
    if this.size > 1 and not finalised(GRACE if code else math.inf):
        if said and this.rank:
            console.tell(f"{this.name}: {said}")
        abort(code)
    return code
