"""A state cut over ranks, which goes on with those that remain when some are killed: STEP TICKS FILE KILL...

STEP  ticks between copies
FILE  where a rank that is killed writes the time
KILL  TICK.PLACE.NUMBER: the rank that began with this number is killed at a tick, at a place below

Rank 0 prints from which tick on there were how many ranks, the seconds from the last kill to the first tick that was done
again, and at the end a sum of the state's bytes.
"""

import hashlib
import os
import signal
import sys
import threading
import time
from pathlib import Path

import numpy as np

from hybrid.ranks.buddies import Buddies
from hybrid.ranks.everyone import RankLost
from hybrid.ranks.group import Group
from hybrid.ranks.world import world

SIZE = 240
PLACES = ("before", "started", "after", "kept", "sometime")


class State:
    """A ring of numbers, each of which moves by its neighbours, the tick and how many ranks there are."""

    def __init__(self, group: Group, numbers: np.ndarray):
        self.group = group
        self.numbers = np.array_split(numbers, group.size)[group.rank].copy()
        self.first, self.last = np.zeros(1, np.float32), np.zeros(1, np.float32)  # ours
        self.left, self.right = np.zeros(1, np.float32), np.zeros(1, np.float32)  # our neighbours'
        after, before = (group.rank + 1) % group.size, (group.rank - 1) % group.size
        self.up = group.exchange({after: self.last}, {before: self.left}) if group.size > 1 else None
        self.down = group.exchange({before: self.first}, {after: self.right}) if group.size > 1 else None

    def tick(self, tick: int, harm) -> None:
        self.first[:], self.last[:] = self.numbers[0], self.numbers[-1]
        harm("before")
        if self.up:
            self.up.start()
            self.down.start()
            harm("started")
            self.up.wait()
            self.down.wait()
        else:
            self.left[:], self.right[:] = self.last, self.first
        ring = np.concatenate([self.left, self.numbers, self.right])
        self.numbers = moved(ring, tick, self.group.size)
        harm("after")


def moved(ring: np.ndarray, tick: int, ranks: int) -> np.ndarray:
    """The numbers of a ring, which begins with its last one and ends with its first, after a tick."""
    return (np.float32(0.5) * ring[1:-1] + np.float32(0.25) * (ring[:-2] + ring[2:]) + np.float32(tick / ranks)).astype(
        np.float32
    )


def beginning() -> np.ndarray:
    return np.random.default_rng(0).random(SIZE, np.float32)


class Harm:
    """Kills this rank when its time has come."""

    def __init__(self, file: str, kills: list[str]):
        self.file = Path(file)
        self.kills = {
            (int(tick), place)
            for tick, place, number in (kill.split(".") for kill in kills)
            if int(number) == world().rank
        }
        self.tick = 0

    def at(self, tick: int) -> None:
        self.tick = tick
        if (tick, "sometime") in self.kills:
            threading.Timer(np.random.default_rng(tick).random() * 0.003, self.die).start()

    def __call__(self, place: str) -> None:
        if (self.tick, place) in self.kills:
            self.die()

    def die(self) -> None:
        self.file.write_text(repr(time.time()))
        os.kill(os.getpid(), signal.SIGKILL)


def main() -> None:
    step, ticks = int(sys.argv[1]), int(sys.argv[2])
    harm = Harm(sys.argv[3], sys.argv[4:])
    group, copies = Group(), None
    while True:
        try:
            tick, numbers = copies.back(group) if copies else (0, beginning())
            state, fresh = State(group, numbers), Copies(group)
            fresh.keep(tick, [state.numbers])
            copies = fresh
            print(f"from {tick} on {group.size}", flush=True)
            for now in range(tick, ticks):
                harm.at(now)
                state.tick(now, harm)
                if (now + 1) % step == 0:
                    copies.keep(now + 1, [state.numbers])
                    harm("kept")
                if now == tick and harm.file.exists():
                    print(f"after {time.time() - float(harm.file.read_text()):.6f}", flush=True)
            copies.keep(ticks, [state.numbers])
            _, numbers = copies.back(group)
            group.agree()
            break
        except RankLost as loss:
            print(loss, file=sys.stderr)
            group = group.shrunk()
    print(f"sum {hashlib.sha256(numbers.tobytes()).hexdigest()}")


class Copies(Buddies):
    """With the whole ring."""

    def back(self, group: Group) -> tuple[int, np.ndarray]:
        return self.tick, np.concatenate([part[0] for part in self.parts(group)])


if __name__ == "__main__":
    main()
