"""Programs of the simulation done by the ranks of this run: messages are real; compute is processor time, spent on nothing."""

import time
from typing import Any

import numpy as np

from bench.ranks_pvm import timed
from bench.scale_simulation import Program
from hybrid.ranks.group import Exchange, Group


def told(programs: list[Program]) -> list[list[list[Any]]]:
    """The programs, for JSON."""
    return [[[type(step).__name__, *step] for step in program] for program in programs]


def seconds(programs: list[list[list[Any]]], repeat: int) -> list[float]:
    """Samples of the seconds of a tick in which each rank does its program; all ranks call it."""
    group, names = Group(), {step[1]: None for program in programs for step in program if step[0] == "Start"}
    sends = [{step[1]: step[2] for step in program if step[0] == "Start"} for program in programs]
    exchanges = {name: _exchange(group, [sizes.get(name, {}) for sizes in sends]) for name in names}
    own = programs[group.rank]
    return timed(group, lambda: _tick(own, exchanges), repeat)


def _exchange(group: Group, sends: list[dict[str, float]]) -> Exchange:
    """Messages of the right sizes. sends: of each rank, bytes by the rank that gets them, whose number JSON makes a text."""
    mine = str(group.rank)
    gone = {int(to): np.zeros(round(size), np.uint8) for to, size in sends[group.rank].items()}
    come = {of: np.zeros(round(sizes[mine]), np.uint8) for of, sizes in enumerate(sends) if mine in sizes}
    return group.exchange(gone, come)


def _tick(program: list[list[Any]], exchanges: dict[str, Exchange]) -> None:
    for kind, name, *given in program:
        if kind == "Compute":
            _spend(given[0])
        elif kind == "Start":
            exchanges[name].start()
        else:
            exchanges[name].wait()


def _spend(processor: float) -> None:
    """Spend seconds of processor time: beside others on the same core it takes longer."""
    end = time.thread_time() + processor
    while time.thread_time() < end:
        pass
