"""Runs on two ranks of which one, or their launcher, is killed at any time: all end, and the run goes on, on both or on one."""

import contextlib
import functools
import os
import signal
import subprocess
import time
from pathlib import Path

import numpy as np

from tests.support.ranks import alive, gone, started

from .child import Task
from .runs import Broken, Model, Whole, finish, fresh_disk, going_on, has_begun, standing, whole

KINDS = ("language", "pvm")
MODULE = "tests.support.rank_train"  # draws no pictures
TRIES = 3
LIMIT = 180.0  # seconds in which all are gone after a kill


class Ranks:
    """Kills ranks and their launchers.

    counts  how many of each
    """

    def __init__(self, folder: Path, data: Path):
        self._folder, self._data = folder, data
        self.counts = {"rank": 0, "launcher": 0}

    @property
    def count(self) -> int:
        """Of both."""
        return sum(self.counts.values())

    def __str__(self) -> str:
        return f"{self.count:,} kills on two ranks: {self.counts}"

    def turn(self, number: int, seed: int) -> None:
        """One run; Broken where a kill does harm. The model follows from the number."""
        rng = np.random.default_rng([seed, number])
        self.life(whole(self._model(KINDS[number % len(KINDS)])), rng)

    def life(self, this: Whole, rng: np.random.Generator) -> None:
        """A run on two ranks that is killed some times, and comes to its end on one or two."""
        disk = fresh_disk(self._folder)
        out, before = disk / "run", -1
        for _ in range(TRIES):
            words = going_on(this.model, out, "--save-every", "0.01")
            if not self._killed(words, disk, rng):
                break
            found = standing(out)
            if (-1 if found is None else found) < before:
                raise Broken(f"went back from tick {before} to {found}")
            before = -1 if found is None else found
        anew = has_begun(out)
        finish(Task(going_on(this.model, out), disk).done(), out, anew, this.left)

    def _killed(self, words: list[str], disk: Path, rng: np.random.Generator) -> bool:
        """Kill a rank or the launcher at some time; False where the run comes to its end before."""
        running = self._started(words)
        end = time.monotonic() + rng.random() * self._seconds
        while running.poll() is None and time.monotonic() < end:
            time.sleep(0.01)
        ranks = [pid for pid in alive(running) if _is_rank(pid)]
        victim = "rank" if ranks and rng.random() < 0.8 else "launcher"
        if ending := running.poll() is None:
            with contextlib.suppress(ProcessLookupError):
                os.kill(int(rng.choice(ranks)) if victim == "rank" else running.pid, signal.SIGKILL)
        _, said = running.communicate(timeout=LIMIT)
        if left := gone(running, 30.0):
            raise Broken(f"processes are left: {left}")
        if running.returncode and not ending:
            raise Broken(f"cannot go on, exit code {running.returncode}: {said[-2000:]}")
        if killed := ending and running.returncode != 0:
            self.counts[victim] += 1
        return killed

    @functools.cached_property
    def _seconds(self) -> float:
        """That a run takes on two ranks."""
        disk, begun = fresh_disk(self._folder / "ranks"), time.monotonic()
        running = self._started(self._model(KINDS[0]).command(disk / "run"))
        if error := running.communicate()[1] if running.wait() else "":
            raise Broken(error)
        return time.monotonic() - begun

    def _started(self, words: list[str]) -> subprocess.Popen[str]:
        return started(*words, ranks=2, module=MODULE)

    def _model(self, kind: str) -> Model:
        return Model(kind, "cpu", self._data, ("--threads", "1"))


def _is_rank(pid: int) -> bool:
    """Whether a process is a rank, not what started it."""
    with contextlib.suppress(OSError):  # it has just ended
        program, *words = Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")
        return b"python" in program and b"mpi4py" in words
    return False
