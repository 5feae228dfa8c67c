"""What messages take between the ranks of this run; each function is called by all of them, and rank 0 knows the figures."""

import time
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from hybrid.ranks.group import Exchange, Group
from hybrid.ranks.pingpong import Messages

HALOS = (256, 2_048, 16_384, 65_536, 262_144, 1 << 20)  # bytes that go to each neighbour
SECONDS = 0.005  # of a sample, about
BESIDE = 3.0  # what a rank computes beside an exchange, of the time that this takes alone


def all_of_them(sizes: list[int], around: list[int], repeat: int) -> list[dict[str, Any]]:
    """Messages one way of some sizes, sums, all to all, halos: work, bytes, samples in seconds, and what else was found."""
    messages, group = Messages(), Group()
    found = [{"work": "ranks.message", "bytes": size, "samples": messages.pingpong(1, size, repeat)} for size in sizes]
    found.append({"work": "ranks.allreduce", "bytes": 4 << 20, "samples": messages.allreduce(4 << 20, repeat)})
    found.append({"work": "ranks.alltoall", "bytes": 1 << 18, "samples": messages.alltoall(1 << 18, repeat)})
    return found + halos(group, around, repeat)


def halos(group: Group, sizes: list[int], repeat: int) -> list[dict[str, Any]]:
    """Ranks in a ring exchange with both neighbours, with one where there are two: bytes to each; beside the samples

    neighbours  how many
    start       seconds until a rank has begun
    hidden      the share of the exchange that a rank does not wait for, if it computes meanwhile
    """
    found = []
    for size in sizes:
        exchange, wrong, around = ring(group, size)
        alone = _timed(group, partial(_once, exchange, 0.0), repeat)
        if wrong():
            raise ValueError(f"halo of {size} bytes: found other numbers than the neighbours sent")
        takes = np.array([min(sum(one) for one in alone)])
        group.share(takes)
        beside = BESIDE * float(takes[0])
        both = _timed(group, partial(_once, exchange, beside), repeat)
        whole, more = (float(np.median([sum(one) for one in pairs])) for pairs in (alone, both))
        found.append(
            {
                "work": "ranks.halo",
                "bytes": size,
                "samples": [sum(one) for one in alone],
                "neighbours": around,
                "start": float(np.median([start for start, _ in alone])),
                "hidden": min(max(1 - (more - beside) / whole, 0.0), 1.0),
            }
        )
    return found


def ring(group: Group, size: int) -> tuple[Exchange, Callable[[], bool], int]:
    """An exchange with the neighbours of a ring; whether something else has come than they send; how many there are."""
    around = sorted({(group.rank + 1) % group.size, (group.rank - 1) % group.size} - {group.rank})
    gone = {rank: np.full(size, group.rank, np.uint8) for rank in around}
    come = {rank: np.full(size, 255, np.uint8) for rank in around}
    return group.exchange(gone, come), lambda: any((array != rank).any() for rank, array in come.items()), len(around)


def _once(exchange: Exchange, seconds: float) -> tuple[float, float]:
    """One exchange, beside so many seconds of work: how long its start took, and the rest."""
    start = time.perf_counter()
    exchange.start()
    begun = time.perf_counter()
    while time.perf_counter() < begun + seconds:
        pass
    exchange.wait()
    return begun - start, time.perf_counter() - begun


def _timed(group: Group, once: Callable[[], tuple[float, float]], repeat: int) -> list[tuple[float, float]]:
    """Means of as many in a row as rank 0 finds long enough, `repeat` times."""
    once()
    turns = np.array([max(3, min(1000, int(SECONDS / sum(once()))))])
    group.share(turns)
    samples = []
    for _ in range(repeat):
        group.barrier()
        pairs = [once() for _ in range(turns[0])]
        samples.append((float(np.mean([pair[0] for pair in pairs])), float(np.mean([pair[1] for pair in pairs]))))
    return samples
