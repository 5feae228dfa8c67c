"""Ranks that time their messages; rank 0 says whether the figures can be."""

import time

import numpy as np

from hybrid.mpi.group import Group
from hybrid.mpi.pingpong import Messages


def main() -> None:
    group, messages = Group(), Messages()
    right = [messages.hosts(3) == [(messages.hosts(3)[0][0], 3)] * group.size]
    for other in range(1, group.size):
        for size in (8, 1 << 20):
            samples = messages.pingpong(other, size, 3)
            right.append(len(samples) == (3 if group.rank in (0, other) else 0) and all(0 < one < 1 for one in samples))
    for samples in (messages.allreduce(1 << 12, 3), messages.alltoall(1 << 12, 3)):
        right.append(len(samples) == 3 and all(0 < one < 1 for one in samples))

    # On one host all ranks have the same clock, whatever another one would be told
    right.append(abs(messages.offset()) < 0.1)
    clock, ahead = time.perf_counter, 50.0 * group.rank
    time.perf_counter = lambda: clock() + ahead  # a host whose clock began elsewhere
    right.append(abs(messages.offset() + ahead) < 0.1)
    time.perf_counter = clock

    wrong = np.array([not all(right)], np.int64)
    group.most(wrong)
    if group.rank == 0:
        print("wrong" if wrong[0] else "right")


if __name__ == "__main__":
    main()
