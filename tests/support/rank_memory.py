"""Ranks that share a table of 64 MiB, each with less memory left than that; rank 0 says what became of it.

A small model is trained before the limit: so all kernels are compiled, and all of Python's modules are there.
"""

import resource

import numba
import numpy as np

from bench.shards_rank import WIDTH, peak, trained
from hybrid.ranks.group import Group

ROWS, CLASSES = 2**16, 2000
ROOM = 48 * 2**20  # bytes: a quarter of the table, and 32 MiB for a batch and pieces of the table on their way


def main() -> None:
    numba.set_num_threads(1)
    group = Group()
    trained(group, 1000, CLASSES)
    limit = peak("VmSize") + ROOM
    resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
    try:
        found = trained(group, ROWS, CLASSES)
    except MemoryError:
        print("no memory")
        return
    ranks = np.array(found["ranks"])
    assert (ranks[:, 0] == 4 * ROWS * WIDTH // group.size).all(), ranks
    print("trained" if found["losses"][-1] < found["losses"][0] else found["losses"])


if __name__ == "__main__":
    main()
