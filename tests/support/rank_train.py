"""`hybrid` on ranks of which some are killed while they train: FILE KILL... -- ARGUMENT...

FILE  where a rank that is killed writes the time, and rank 0 the ticks that were done again: a line of the tick, how many ranks
      there were, and the seconds since the last kill
KILL  TICK.PLACE.NUMBER: the rank that began with this number is killed when it has made so many ticks, at a place below;
      once, however often the tick is made

write     as rank 0, when it has written the options of the run, before the first tick
after     between two ticks
within    in the middle of the next tick, where the others wait for it
sometime  within the first milliseconds of the next tick
"""

import os
import signal
import sys
import threading
import time
from pathlib import Path

import numpy as np

from hybrid.cli import main
from hybrid.pvm.judge import curve, panel
from hybrid.ranks.group import Group
from hybrid.ranks.world import world
from hybrid.train import plots, store
from hybrid.train.loop import Run

PLACES = ("after", "within", "sometime")  # of a tick


class Harm:
    """Kills this rank when its time has come."""

    def __init__(self, file: str, kills: list[str]):
        self.file = Path(file)
        split = [kill.split(".") for kill in kills]
        self.kills = {int(tick): place for tick, place, number in split if int(number) == world().number}
        self.place, self.near, self.ranks = "", False, 0

    def noted(self, run: Run) -> None:
        """A tick was made."""
        if self.ranks > run.ranks.size and run.ranks.rank == 0:
            since = time.time() - float(self.file.read_text())
            with self.file.with_suffix(".again").open("a") as again:
                again.write(f"{run.model.tick - 1} {run.ranks.size} {since:.6f}\n")
        self.ranks, self.place = run.ranks.size, self.kills.get(run.model.tick, "")
        if self.place == "after":
            self.die()
        if self.place == "sometime":
            threading.Timer(np.random.default_rng(run.model.tick).random() * 0.005, self.die).start()

    def written(self) -> None:
        """The options of the run were."""
        if self.kills.get(0) == "write":
            self.die()

    def decided(self) -> None:
        """The ranks know what they do before the next tick."""
        self.near = self.place == "within"

    def met(self) -> None:
        """The others wait for this one."""
        if self.near:
            self.die()

    def die(self) -> None:
        self.file.write_text(repr(time.time()))
        os.kill(os.getpid(), signal.SIGKILL)


def beside(owner, name: str, before=lambda *given: None, after=lambda *given: None) -> None:
    """Let a method do something more."""
    does = getattr(owner, name)

    def more(*given):
        before(*given)
        found = does(*given)
        after(*given)
        return found

    setattr(owner, name, more)


def put(harm: Harm) -> None:
    """Put harm where it comes about; leave out pictures, which take longest of a small run."""
    for module, name in ((plots, "curve"), (plots, "last_ticks"), (curve, "draw"), (panel, "save")):
        setattr(module, name, lambda *given: None)
    beside(Run, "_note", after=lambda run, *given: harm.noted(run))
    beside(store, "keep_options", after=lambda *given: harm.written())
    beside(Group, "greatest", after=lambda *given: harm.decided())
    beside(Group, "share", before=lambda *given: harm.met())  # of an engine, in each tick
    beside(Group, "join", before=lambda *given: harm.met())  # of a Predictive Vision Model


if __name__ == "__main__":
    at = sys.argv.index("--")
    put(Harm(sys.argv[1], sys.argv[2:at]))
    sys.exit(main(sys.argv[at + 1 :]))
