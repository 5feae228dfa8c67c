"""Ranks of an engine whose backward waits in its last layers until the gradient of the others has crossed.

    rank_spans.py FOLDER

A rank keeps in FOLDER/RANK.json its losses, and the intervals of its trace: queue, stage, tick, micro-batch, start, end.
"""

import json
import sys
import time
from pathlib import Path

import numba

from hybrid.mpi.group import Group
from tests.support.rank_engine import learned, made

PATIENCE = 30.0  # seconds; where nothing crosses meanwhile, the trace says so


def crossed(trace, slot):
    """Whether the first span of a tick's gradient has crossed."""
    return any((i.stage, i.tick) == ("gradient 0 to all", slot.tick) for i in list(trace.recent))


def waiting(trained):
    """Let backward of whole layers be as it is, and the last span of each tick wait for the first."""
    fall, gradient = trained.trunk.falling, trained.route.gradient

    def falling(slot):
        for begin in fall(slot):
            end = time.monotonic() + PATIENCE
            while begin == 0 and gradient.is_last(slot) and not crossed(trained.trace, slot) and time.monotonic() < end:
                time.sleep(1e-3)
            yield begin

    trained.trunk.falling = falling


def main() -> None:
    folder, ranks = Path(sys.argv[1]), Group()
    numba.set_num_threads(1)
    trained, feed = made("overlapped", ranks)
    waiting(trained)
    losses = learned(trained, feed)
    (folder / f"{ranks.rank}.json").write_text(json.dumps([losses, list(trained.trace.recent)]))


if __name__ == "__main__":
    main()
