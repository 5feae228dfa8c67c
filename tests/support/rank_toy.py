"""A module that runs as ranks; what happens to rank 1 is its argument."""

import os
import signal
import sys
import time

import numpy as np
from mpi4py import MPI

from hybrid.ranks import watch
from hybrid.ranks.group import Group
from hybrid.ranks.world import world


def main() -> int:
    what, this = sys.argv[1], world()
    print(f"{this.rank} of {this.size}, here {this.local_rank}, mpi {this.mpi}", flush=True)
    print("a note of all", file=sys.stderr)
    if what == "hang after messages of others":
        _messages(Group())
    if this.rank == 1:
        if what == "raise":
            raise RuntimeError("boom")
        if what == "mistake":
            print("hybrid: error: no such file", file=sys.stderr)
            return 2
        if what == "kill":
            os.kill(os.getpid(), signal.SIGKILL)
        if what == "kill keeper":
            os.kill(os.getppid(), signal.SIGKILL)
        while what.startswith("hang"):
            time.sleep(1)
        if what == "lost, and one hangs":
            os.kill(os.getpid(), signal.SIGKILL)
    if what == "lost, and one hangs":
        if this.rank == 2:
            time.sleep(60)
        Group().barrier()
    if what == "wait":
        print("ready", flush=True)
        time.sleep(60)
    with watch.meeting():
        MPI.COMM_WORLD.Barrier()
    print("met")
    if what == "kill at the end" and this.rank == 1:
        os.kill(os.getpid(), signal.SIGKILL)
    return 0


def _messages(group: Group) -> None:
    """Ranks 0 and 1 send each other something, twice."""
    partner = {0: [1], 1: [0]}.get(group.rank, [])
    gone, come = np.zeros((2, 3))
    exchange = group.exchange(dict.fromkeys(partner, gone), dict.fromkeys(partner, come))
    for _ in range(2):
        exchange.start()
        exchange.wait()


if __name__ == "__main__":
    sys.exit(main())
