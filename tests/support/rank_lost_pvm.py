"""A Predictive Vision Model of ranks goes on from its checkpoint with those that remain: FOLDER, who is killed, at which TICK.

What does not hold is raised, which ends all ranks.
"""

import os
import signal
import sys
from pathlib import Path

from hybrid.pvm.model import PVM
from hybrid.ranks.everyone import RankLost
from hybrid.ranks.group import Group
from hybrid.ranks.world import world
from tests.support.small_pvm import TINY, Scene, walk

TICKS, SAVED = 9, 3


def main() -> None:
    folder, number, tick = Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3])
    feed, group, lost = Scene(TICKS), Group(), False
    while True:
        try:
            model = PVM.load(folder, threads=1, ranks=group)[0] if lost else made(group)
            print(f"from {model.step_number} on {group.size}", flush=True)
            while model.step_number < TICKS:
                if (world().number, model.step_number) == (number, tick):
                    os.kill(os.getpid(), signal.SIGKILL)
                walk(model, feed, model.step_number + 1)
                if model.step_number == SAVED:
                    model.save(folder, {})
            model.save(folder, {})
            group.agree()
            break
        except RankLost:
            group, lost = group.shrunk(), True
    alone = made(None)
    walk(alone, feed)
    alone.save(folder.with_name(f"alone {group.rank}"), {})


def made(ranks: Group | None) -> PVM:
    return PVM(TINY, threads=1, seed=3, ranks=ranks)


if __name__ == "__main__":
    main()
