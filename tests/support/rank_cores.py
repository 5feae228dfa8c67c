"""Ranks that say what each of them takes of its machine; rank 0 prints it as JSON."""

import json
import os

import numpy as np

from hybrid.processors import affinity, available
from hybrid.ranks.group import Group
from hybrid.ranks.world import take_cores, take_threads, world


def main() -> None:
    group, this = Group(), world()
    take_threads(this)
    said = int(os.environ.get("OMP_NUM_THREADS", 0))
    before, threads = len(affinity()), available()
    cores = [core for node in take_cores() for core in node]
    assert cores == [core for node in take_cores() for core in node], "asked twice, a rank has another part"
    assert affinity() == sorted(cores)
    found = np.array([this.sharing, this.turn, before, said, threads, len(cores), cores[0], cores[-1]], np.int64)
    parts = [np.zeros_like(found) for _ in range(group.size)]
    parts[group.rank][:] = found
    group.gather_all(parts)
    if group.rank == 0:
        print(json.dumps([part.tolist() for part in parts]))


if __name__ == "__main__":
    main()
