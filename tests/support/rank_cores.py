"""Ranks that say what each of them takes of its machine; rank 0 prints it as JSON."""

import json
import os

import numpy as np

from hybrid.machine import available
from hybrid.mpi.group import Group
from hybrid.mpi.world import take_threads, world


def main() -> None:
    group, this = Group(), world()
    take_threads(this)
    said = int(os.environ.get("OMP_NUM_THREADS", 0))
    found = np.array([this.sharing, said, available()], np.int64)
    parts = [np.zeros_like(found) for _ in range(group.size)]
    parts[group.rank][:] = found
    group.gather_all(parts)
    if group.rank == 0:
        print(json.dumps([part.tolist() for part in parts]))


if __name__ == "__main__":
    main()
