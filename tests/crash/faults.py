"""Faults while a run writes to its disk: a call that fails, a process that is killed at a call, a power cut."""

import errno
import functools
import hashlib
import shutil
import signal
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from . import power
from .calls import Call
from .child import Event, Fault, Task
from .runs import (
    KINDS,
    Broken,
    Model,
    Whole,
    check_loss,
    check_saves,
    finish,
    fresh_disk,
    going_on,
    has_begun,
    left,
    standing,
    whole,
)

ERRORS = (errno.ENOSPC, errno.EIO, errno.EROFS)
MANNERS = ("fail", "kill", "cut")
RUN = Path("runs") / "run"  # on the disk, which has neither folder at the beginning
SCENES = ("new", "resumed", "replaced")  # a new run, one that goes on, one in the place of another: --overwrite


class Scene(NamedTuple):
    """A run, as it is before a process works on it, and what that process does when nothing goes wrong.

    begin   its folder, as a folder of the disk
    more    options of the command line
    may     what the run may leave in the end
    before  the ticks that may stand before its first save
    told    calls and events, in their order
    """

    whole: Whole
    begin: Path
    more: tuple[str, ...]
    may: tuple[dict[str, Any], ...]
    before: tuple[int | None, ...]
    told: tuple[Event | Call, ...]

    @property
    def calls(self) -> int:
        """How many calls there were."""
        return sum(isinstance(told, Call) for told in self.told)

    def words(self, out: Path) -> list[str]:
        """The command that the process is given."""
        model = self.whole.model
        return model.command(out, *self.more) if self.more else going_on(model, out)


class Faults:
    """Draws faults and looks at what comes of them.

    counts  how many there were, by manner
    """

    def __init__(self, folder: Path, data: Path, plant: str | None = None):
        self._folder, self._data, self._plant = folder, data, plant
        self._seen = set[str]()
        self.counts = dict.fromkeys(MANNERS, 0)

    @property
    def count(self) -> int:
        """Of all manners."""
        return sum(self.counts.values())

    def __str__(self) -> str:
        return f"{self.count:,} faults: {self.counts}; {len(self._seen):,} different folders were left by power cuts"

    def turn(self, number: int, seed: int) -> None:
        """One fault; Broken where it does harm. The model, the scene and the manner follow from the number."""
        rng = np.random.default_rng([seed, number])
        kind, rest = KINDS[number % len(KINDS)], number // len(KINDS)
        manner, scene = MANNERS[rest % len(MANNERS)], SCENES[rest // len(MANNERS) % len(SCENES)]
        self.fault(kind, scene, manner, rng)

    def fault(self, kind: str, name: str, manner: str, rng: np.random.Generator) -> None:
        """One fault of a manner; Broken where it does harm."""
        scene = self.scene(kind, name)
        self.counts[manner] += 1
        if manner == "cut":
            self.cut(scene, int(rng.integers(len(scene.told) + 1)), rng)
            return
        error = int(rng.choice(ERRORS)) if manner == "fail" else 0
        torn = float(rng.random() * rng.integers(2))  # of half of them nothing
        self.fail(scene, Fault(int(rng.integers(scene.calls)), error, torn, bool(rng.integers(2))))

    def cut(self, scene: Scene, at: int, rng: np.random.Generator) -> None:
        """The machine loses its power when so much was told, and the run goes on from what that leaves."""
        disk, events = fresh_disk(self._folder), []
        before = power.Disk(scene.begin)
        for told in scene.told[:at]:
            if isinstance(told, Call):
                before.take(told)
            else:
                events.append(told)
        before.cut(disk, rng)
        saves = sum(event.name in ("saving", "saved") for event in events)
        state = f"{scene.begin} {saves} {_digest(disk)}"
        if state not in self._seen:
            self._seen.add(state)
            self._go_on(scene, disk, events)

    def fail(self, scene: Scene, fault: Fault) -> None:
        """A call fails, or is the last of its process, and the run goes on when the disk is well again."""
        disk, dead = fresh_disk(self._folder), not fault.error
        shutil.copytree(scene.begin, disk, dirs_exist_ok=True)
        out = disk / RUN
        child = Task(scene.words(out), disk, every=True, fault=fault, plant=self._plant).done()
        if "fault" not in [event.name for event in child.events]:
            raise Broken(f"there is no call {fault.number}, though there was in a run like it")
        check_saves(child.events, 0.0, scene.whole.epoch)
        if child.code not in ((-signal.SIGKILL,) if dead else (0, 2)):
            raise Broken(f"exit code {child.code}: {child.said[-2000:]}")
        told = child.said.splitlines()[-1:]
        if child.code == 2 and not (told and told[0].startswith("hybrid: error: ") and str(disk) in told[0]):
            raise Broken(f"names neither the failure nor a file: {child.said[-2000:]}")
        self._go_on(scene, disk, child.events)

    def _go_on(self, scene: Scene, disk: Path, events: Sequence[Event]) -> None:
        """Look at what is left, and finish the run."""
        out = disk / RUN
        check_loss(out, events, scene.before)
        anew, words = has_begun(out), going_on(scene.whole.model, out, *scene.more)
        finish(Task(words, disk).done(), out, anew, *scene.may)

    @functools.cache  # noqa: B019  as long as the campaign
    def scene(self, kind: str, name: str) -> Scene:
        """A run of a model, recorded."""
        this, disk = whole(Model(kind, "cpu", self._data)), self._folder / f"{kind}-{name}" / "disk"
        model, out = this.model, disk / RUN
        scene = Scene(this, disk.parent / "begin", (), (this.left,), (None,), ())
        disk.mkdir(parents=True)
        if name == "resumed":
            fault = Fault(self.scene(kind, "new").calls * 2 // 3, 0)
            half = Task(model.command(out), disk, every=True, fault=fault).done()
            scene = scene._replace(before=(check_loss(out, half.events),))
        elif name == "replaced":
            Task(model.command(out, "--seed", "1"), disk).done()
            scene = scene._replace(more=("--overwrite",), may=(this.left, left(out)), before=(standing(out), None))
        shutil.copytree(disk, scene.begin)
        child = Task(scene.words(out), disk, every=True, record=True, plant=self._plant).done()
        check_saves(child.events, 0.0, this.epoch)
        finish(child, out, False, this.left)
        return scene._replace(told=tuple(child.told))


def _digest(folder: Path) -> str:
    """Of all names and bytes in a folder."""
    digest = hashlib.sha256()
    for path in sorted(folder.rglob("*")):
        digest.update(f"{path.relative_to(folder)}\0".encode())
        if path.is_file():
            digest.update(hashlib.sha256(path.read_bytes()).digest())
    return digest.hexdigest()
