"""Processes that are killed at any time, and started again, and killed again, until one of them comes to the end."""

import signal
from pathlib import Path

import numpy as np

from .child import Child, Task
from .runs import KINDS, Broken, Model, Whole, check_loss, check_saves, finish, fresh_disk, going_on, has_begun, whole

EVERY = (0.0, 0.002, 0.02)  # seconds between saves; 0: after epochs alone
MOST = 6  # kills of one run


class Kills:
    """Kills runs of every model on these devices, and looks at what comes of them.

    kills   how many processes were killed, by device
    rivals  how many processes were begun on the folder of a run under way, and refused
    """

    def __init__(self, folder: Path, data: Path, devices: tuple[str, ...], plant: str | None = None):
        self._folder, self._data, self._devices, self._plant = folder, data, devices, plant
        self.kills, self.rivals = dict.fromkeys(devices, 0), 0

    @property
    def count(self) -> int:
        """On all devices."""
        return sum(self.kills.values())

    def __str__(self) -> str:
        return f"{self.count:,} kills: {self.kills}; {self.rivals} second processes were refused"

    def turn(self, number: int, seed: int) -> None:
        """The life of one run; Broken where a kill does harm. Model and device follow from the number."""
        rng = np.random.default_rng([seed, number])
        kind, device = KINDS[number % len(KINDS)], self._devices[number // len(KINDS) % len(self._devices)]
        self.life(whole(Model(kind, device, self._data)), float(rng.choice(EVERY)), rng)

    def life(self, this: Whole, every: float, rng: np.random.Generator) -> None:
        """A run that is killed up to MOST times, with so many seconds between its saves."""
        disk = fresh_disk(self._folder)
        out, before = disk / "run", None
        more = "--save-every", str(every)
        for _ in range(MOST):
            anew, words = has_begun(out), going_on(this.model, out, *more)
            child = Task(words, disk, plant=self._plant).begun()
            if not self._killed(child, this, out, rng):
                break
            self.kills[this.model.device] += 1
            check_saves(child.events, every or float("inf"), this.epoch)
            before = check_loss(out, child.events, (before,))
        else:
            anew, words = has_begun(out), going_on(this.model, out, *more)
            child = Task(words, disk, plant=self._plant).done()
        check_saves(child.events, every or float("inf"), this.epoch)
        finish(child, out, anew, this.left)

    def _killed(self, child: Child, this: Whole, out: Path, rng: np.random.Generator) -> bool:
        """Kill a process at some time, half of the time once it learns; False where it comes to its end before."""
        learning = rng.random() < 0.5
        child.hear("saving" if learning else "begun")
        if learning and rng.random() < 0.2:
            self._rival(child, out)
        child.hear("nothing", rng.random() * (this.takes if learning else this.until + this.takes))
        child.kill()
        return child.ended().code == -signal.SIGKILL

    def _rival(self, child: Child, out: Path) -> None:
        """A second process on the folder is refused, and told of the first."""
        child.kill(signal.SIGSTOP)
        rival = Task(["train", "--resume", str(out)], out.parent).done()
        child.kill(signal.SIGCONT)
        if f"process {child.pid} works on this run" in rival.said and rival.code == 2:
            self.rivals += 1
        elif child.hear("saving", 10.0):  # it had not ended by itself
            raise Broken(f"a second process was not refused: exit code {rival.code}: {rival.said[-2000:]}")
