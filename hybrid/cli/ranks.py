"""Which commands run on several ranks, and what a rank says and takes of its machine."""

import argparse
from pathlib import Path

from .. import console
from ..models import MODELS
from ..ranks import share
from ..ranks.world import World

MANY = ("doctor", "sweep")  # commands that run on several ranks, beside those of some models


def check(given: argparse.Namespace, ranks: int, least: int | None = None) -> None:
    """ValueError where a command is to run on more ranks than it can. `train` can where the model's file says so.

    least  down to how many ranks it is to go on when some are killed, if it is
    """
    if least is not None:
        raise ValueError(f"-n {least}:{ranks}: `hybrid {given.command}` does not go on without a rank; take -n {ranks}")
    if ranks == 1 or given.command in MANY:
        return
    what = f"`hybrid {given.command}`"
    if given.command == "train":
        from ..train.store import kind_of

        kind = given.kind or (kind_of(Path(given.resume)) if given.resume else None)
        if kind is None or getattr(MODELS.load(kind), "RANKS", False):  # None: `train` itself says what is wrong
            return
        what = f"the model {kind}"
    raise ValueError(
        f"-n: found {ranks} ranks, but {what} runs on one rank; take -n 1, or leave out `launch -n {ranks}`"
    )


def begin(given: argparse.Namespace, this: World) -> None:
    """Be this rank: refuse what runs on one rank alone, let rank 0 speak for all, and take no core that is another's.

    Where ranks share their cores, each has as many threads as its share, unless options or environment say how many.
    """
    check(given, this.size)
    console.mute = this.rank > 0
    console.quiet = given.quiet or console.mute
    share.take_threads(this)
