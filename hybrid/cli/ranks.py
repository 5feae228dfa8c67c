"""Which commands run on several ranks, and what a rank says and takes of its machine."""

import argparse
import signal
from pathlib import Path

from .. import console
from ..models import MODELS
from ..ranks import share
from ..ranks.rank import STOPPED
from ..ranks.world import World


def check(given: argparse.Namespace, ranks: int, least: int | None = None) -> None:
    """ValueError where a command is to run on more ranks than it can. `train` can where the model's file says so.

    least  down to how many ranks it is to go on when some are killed, if it is
    """
    if least is not None and given.command != "train":
        raise ValueError(f"-n {least}:{ranks}: `hybrid {given.command}` does not go on without a rank; take -n {ranks}")
    if ranks == 1 or given.command == "doctor":
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
    share.take_threads(this)


def say_what_stands(given: argparse.Namespace, code: int) -> None:
    """Where ranks of `train` were killed, and so all were ended: what is left of the run."""
    if given.command != "train" or code != STOPPED + signal.SIGKILL:
        return
    from ..train import store

    folder = Path(given.resume or given.out or f"runs/{given.kind}")
    if store.kind_of(folder):
        console.say(f"{store.standing(folder)}; go on with: hybrid train --resume {folder}")
