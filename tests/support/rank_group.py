"""Ranks that tell each other arrays; rank 0 says whether all had what they should have, or what each takes.

rank_group.py arrays | cores
"""

import json
import os
import platform
import sys

import numpy as np

from hybrid.machine import available
from hybrid.mpi.group import Group
from hybrid.mpi.world import take_threads, world


def arrays(group: Group) -> list[bool]:
    rank, size = group.rank, group.size
    parts = [np.zeros(2 * other, np.float32) for other in range(size)]  # rank 0 has nothing to say
    parts[rank][:] = rank
    group.exchange(dict.fromkeys(group.others, parts[rank]), {other: parts[other] for other in group.others}).run()
    right = [(part == other).all() for other, part in enumerate(parts)]

    # Rank r tells rank q 3 r + q numbers, of which some are none
    said = {other: np.full((3 * rank + other) % 5, 10 * rank + other, np.int16) for other in group.others}
    heard = {other: np.zeros((3 * other + rank) % 5, np.int16) for other in group.others}
    group.exchange(said, heard).run()
    right += [(part == 10 * other + rank).all() for other, part in heard.items()]

    numbers = np.array([rank, -rank], np.int64)
    group.most(numbers)
    right.append(numbers.tolist() == [size - 1, 0])

    shared = np.full(3, rank, np.float64)
    group.share(shared, rank=1)
    right.append((shared == 1).all())

    right.append(group.greatest(rank, 7, -rank) == (size - 1, 7, 0))
    right.append(group.once(lambda: {"rank": rank, "name": "first"}) == {"rank": 0, "name": "first"})
    right += [_refused(group, OSError(28, "disk full", "file")), _refused(group, ValueError("found 1, expected 2"))]

    counts = [2 * other for other in range(size)]
    whole = np.full(sum(counts), -1, np.int32)
    whole[sum(counts[:rank]) : sum(counts[: rank + 1])] = rank
    group.join(whole, counts)
    right.append(np.array_equal(whole, np.repeat(np.arange(size), counts)))
    right += [_agrees(group, failing) for failing in ([], [size - 1], [0, size - 1])]

    # A ring, there and back, again and again, and another exchange under way meanwhile
    after, before = (rank + 1) % size, (rank - 1) % size
    there, come = np.zeros(5, np.int64), np.zeros(5, np.int64)
    back, gone = np.zeros(1 << 17), np.zeros(1 << 17)
    ring, other = group.exchange({after: there}, {before: come}), group.exchange({before: back}, {after: gone})
    for turn in range(20):
        there[:], back[:] = 100 * turn + rank, -turn - rank
        other.start()
        ring.start()
        ring.wait()
        other.wait()
        right += [(come == 100 * turn + before).all(), (gone == -turn - after).all()]
    return right


def _refused(group: Group, error: Exception) -> bool:
    """Whether an error with a note, of rank 0 alone, comes to all."""

    def work() -> None:
        if group.rank == 0:
            error.add_note("make room")
            raise error

    try:
        group.once(work)
    except type(error) as found:
        by = [f"found by rank 0 on {platform.node()}"] if isinstance(error, OSError) else []
        return str(found) == str(error) and found.__notes__ == ["make room", *by]
    return False


def _agrees(group: Group, failing: list[int]) -> bool:
    """Whether all ranks are told what the lowest of those that fail has raised, and that one has raised its own."""
    own = OSError(f"of rank {group.rank}")
    try:
        with group.together():
            if group.rank in failing:
                raise own
    except OSError as failure:
        return str(failure) == f"of rank {failing[0]}" and (failure is own) == (group.rank == failing[0])
    return not failing


def cores(group: Group) -> None:
    """What each rank takes of its machine, as JSON: how many share its cores, OMP_NUM_THREADS, threads."""
    take_threads(world())
    taken = np.zeros((group.size, 3), np.int64)
    taken[group.rank] = world().sharing, int(os.environ.get("OMP_NUM_THREADS", 0)), available()
    group.join(taken.reshape(-1), [3] * group.size)
    if group.rank == 0:
        print(json.dumps(taken.tolist()))


def main() -> None:
    group, what = Group(), sys.argv[1]
    if what == "cores":
        return cores(group)
    wrong = np.array([not all(arrays(group))], np.int64)
    group.most(wrong)
    group.greatest(0)  # waits for all ranks
    if group.rank == 0:
        print("wrong" if wrong[0] else "right")


if __name__ == "__main__":
    main()
