"""python -m tests.crash --kills N --faults N: tiny runs are killed at any moment, and their disks fail at any call.

A finding is a run that cannot go on, has lost more than the work since its last save, or ends with other bytes than one that
nothing interrupted. Each is printed with the command that repeats it: of faults exactly, of kills at about the same time.
"""

import argparse
import contextlib
import errno
import functools
import hashlib
import json
import multiprocessing
import os
import random
import shutil
import signal
import sys
import tempfile
import time
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

import tqdm

import hybrid.cli
from hybrid.models import pvm
from hybrid.pvm import panel
from hybrid.settings import MODELS
from hybrid.storage import checkpoint
from hybrid.train import plots, store
from hybrid.train.loop import Run, Saves
from tests.support.full_disk import Disk, Fault
from tests.support.small_runs import command, figures, ticks, write_data

KINDS = ("language", "words", "factors", "labels", "pvm")
SCENES = ("new", "resumed", "replaced")  # a new run, one that goes on, one in the place of another: --overwrite
ERRORS = (errno.ENOSPC, errno.EIO, errno.EROFS)
MOST = 6  # kills of one run
SECONDS = 300.0  # that a tiny run may take, beside whatever else the machine does
START = multiprocessing.get_context("forkserver")
START.set_forkserver_preload(["tests.crash.warm", "tests.crash.campaign"])


class Broken(Exception):
    """A run that cannot go on, that has lost more than it may, or ends with other bytes."""


# A process


class Child:
    """One command in a process of its own; with a fault a save is due after every tick.

    told  (name, number) as it goes: "begun", "saving" and "saved" with the tick, "fault" and in the end "calls" with the call
    """

    def __init__(self, words: list[str], disk: Path, fault: Fault | None = None):
        self.told: list[tuple[str, int]] = []
        self._said = disk.parent / "said.txt"
        self._line, line = START.Pipe(duplex=False)
        self._process = START.Process(target=run, args=(words, disk, fault, self._said, line))
        self._process.start()
        line.close()

    def hear(self, name: str, seconds: float = SECONDS) -> bool:
        """Wait for a word of this name; False where the process ends, or the time does, before it."""
        end = time.monotonic() + seconds
        while (left := end - time.monotonic()) > 0 and self._line.poll(left):
            try:
                self.told.append(self._line.recv())
            except (EOFError, OSError):  # also in the middle of a word: it was killed
                return False
            if self.told[-1][0] == name:
                return True
        return False

    def kill(self) -> None:
        """End it now."""
        with contextlib.suppress(ProcessLookupError):
            os.kill(self._process.pid or 0, signal.SIGKILL)

    def ended(self) -> "Child":
        """Itself, once the process has ended; one that does not is killed."""
        self.hear("nothing")
        self._process.join(1.0)
        self.kill()
        self._process.join()
        return self

    @property
    def code(self) -> int:
        """Its exit code, -9 where it was killed."""
        return self._process.exitcode or 0

    @property
    def said(self) -> str:
        """Its output and its errors."""
        return self._said.read_text(errors="replace")


def run(words: list[str], disk: Path, fault: Fault | None, said: Path, line: Connection) -> None:
    """What the process does."""
    out = os.open(said, os.O_CREAT | os.O_WRONLY | os.O_TRUNC)
    os.dup2(out, 1)
    os.dup2(out, 2)
    for module, name in ((plots, "curve"), (pvm, "draw_curve"), (panel, "save")):
        setattr(module, name, lambda *_: None)  # pictures take longest of a small run

    def tell(name: str, number: int) -> None:
        line.send((name, number))

    save = Run.save

    def saving(run: Run, name: str = checkpoint.CHECKPOINT) -> None:
        if name == checkpoint.CHECKPOINT:
            tell("saving", run.model.tick)
        save(run, name)
        if name == checkpoint.CHECKPOINT:
            tell("saved", run.model.tick)

    Run.save = saving  # type: ignore[method-assign]
    tell("begun", 0)
    disk_of = Disk(str(disk), fault, tell) if fault else None
    if fault:
        Saves.due = lambda _: True  # type: ignore[method-assign]
    code = hybrid.cli.main(words)
    if disk_of:
        tell("calls", disk_of.number)
    sys.exit(code)


# What has to hold


def left(out: Path) -> dict[str, Any]:
    """What a run has left in the end, without clocks, and without what tells how often it was saved."""
    kept = {name for kind in MODELS.names() for name in getattr(MODELS.load(kind), "FILES", ())}
    found = {name: hashlib.sha256((out / name).read_bytes()).hexdigest() for name in kept if (out / name).exists()}
    for name in store.CHECKPOINTS:
        if checkpoint.stands(out / name):
            found[name] = json.loads((out / name / checkpoint.LATEST).read_bytes())["file"]  # named by its sha256
    points = len(json.loads((out / store.REPORT).read_bytes())["curve"])
    given = {name: value for name, value in store.options_of(out).items() if name not in ("out", "save_every")}
    return found | {"ticks": ticks(out), "curve": figures(out), "report": points, "options": given}


def standing(out: Path) -> int | None:
    """The tick of the checkpoint that a run would go on from; None: there is no run, or it has not been saved yet."""
    if not (out / store.RUN).exists() or not checkpoint.stands(out / checkpoint.CHECKPOINT):
        return None
    try:
        return ticks(out)
    except (ValueError, OSError, KeyError) as error:
        raise Broken(f"no checkpoint that can be read: {error}") from error


def check_loss(out: Path, child: Child, before: list[int | None]) -> list[int | None]:
    """Broken unless the tick that stands is that of the last save that was completed, or of one begun since; that tick.

    before  what may stand before the first save of the process
    """
    may = [*before]
    for name, number in child.told:
        may = [number] if name == "saved" else [*may, number] if name == "saving" else may
    if (found := standing(out)) not in may:
        raise Broken(f"lost more than it may: tick {found} stands, expected {' or '.join(map(str, may))}")
    return [found]


class Campaign:
    """Interrupts runs of every model, each in `folder`."""

    def __init__(self, folder: Path, devices: list[str]):
        self.folder, self.devices, self.kills = folder, devices, 0
        (folder / "data").mkdir()
        self.data = write_data(folder / "data")

    def fresh(self) -> Path:
        """An empty disk; the run's folder is two levels below, and neither is there."""
        shutil.rmtree(self.folder / "turn", ignore_errors=True)
        (disk := self.folder / "turn" / "disk").mkdir(parents=True)
        return disk

    def begin(self, kind: str, device: str, out: Path, *more: str) -> list[str]:
        """The command that begins a run."""
        return command(kind, self.data, out, "--device", device, *more)

    def going_on(self, kind: str, device: str, out: Path, *more: str) -> list[str]:
        """The command that goes on with a run, or begins it where there is none yet."""
        there = (out / store.RUN).exists()
        return ["train", "--resume", str(out)] if there else self.begin(kind, device, out, *more)

    @functools.cache  # noqa: B019  as long as the campaign
    def whole(self, kind: str, device: str) -> tuple[dict[str, Any], float]:
        """What a run leaves that nothing interrupted, and the seconds that it takes once kernels are compiled."""
        found = []
        for _ in range(2):
            disk, begun = self.fresh(), time.monotonic()
            child = Child(self.begin(kind, device, disk / "runs" / "run"), disk).ended()
            if child.code:
                raise Broken(f"{kind}: {child.said}")
            found.append(left(disk / "runs" / "run"))
        if found[0] != found[1]:
            raise Broken(f"{kind}: two runs differ")
        return found[1], time.monotonic() - begun

    def finish(self, kind: str, device: str, disk: Path, may: list[dict[str, Any]], *more: str) -> None:
        """Go on with a run, or begin it anew; Broken unless it leaves what one that nothing interrupted leaves."""
        out = disk / "runs" / "run"
        there, saved = (out / store.RUN).exists(), standing(out) is not None
        child = Child(self.going_on(kind, device, out, *more), disk).ended()
        if child.code:
            raise Broken(f"cannot go on, exit code {child.code}: {child.said}")
        if there and not saved and "starts again" not in child.said:
            raise Broken("began anew without saying so")
        if (found := left(out)) not in may:
            differ = [name for name in found | may[0] if found.get(name) != may[0].get(name)]
            raise Broken(f"differs from a run without interruption: {', '.join(sorted(differ))}")
        if parts := [path.name for path in out.rglob("*.part")]:
            raise Broken(f"left behind: {parts}")

    @functools.cache  # noqa: B019
    def scene(self, kind: str, name: str) -> tuple[Path, list[int | None], list[dict[str, Any]], int]:
        """Of a run before a process works on it: the disk, what tick may stand, what may be left, the calls of that process."""
        before, may, kept = list[int | None]([None]), [self.whole(kind, "cpu")[0]], self.folder / f"{kind}-{name}"
        calls = self.scene(kind, "new")[3] if name == "resumed" else 0
        disk = self.fresh()
        out = disk / "runs" / "run"
        if name == "resumed":
            half = Child(self.begin(kind, "cpu", out), disk, Fault(calls * 2 // 3)).ended()
            before = check_loss(out, half, [None])
        elif name == "replaced":
            Child(self.begin(kind, "cpu", out, "--seed", "1"), disk).ended()
            before, may = [standing(out), None], [*may, left(out)]
        shutil.copytree(disk, kept)
        child = Child(self.words(kind, name, out), disk, Fault(sys.maxsize)).ended()
        if child.code:
            raise Broken(f"{kind}, {name}: {child.said}")
        return kept, before, may, child.told[-1][1]

    def words(self, kind: str, name: str, out: Path) -> list[str]:
        """The command of the process in a scene."""
        overwrite = ["--overwrite"] * (name == "replaced")
        return (self.going_on if name == "resumed" else self.begin)(kind, "cpu", out, *overwrite)

    def fault(self, kind: str, name: str, rng: random.Random) -> None:
        """A call fails, or is the last of its process; the run goes on when the disk is well again."""
        kept, before, may, calls = self.scene(kind, name)
        torn = rng.choice([0.0, rng.random()])  # of half of the writes nothing
        fault = Fault(rng.randrange(calls), rng.choice([0, *ERRORS]), torn, rng.random() < 0.5)
        disk = self.fresh()
        shutil.copytree(kept, disk, dirs_exist_ok=True)
        out = disk / "runs" / "run"
        child = Child(self.words(kind, name, out), disk, fault).ended()
        if "fault" not in [word for word, _ in child.told]:
            raise Broken(f"there is no call {fault.number}, though there was in a run like it")
        if child.code not in ((0, 2) if fault.error else (-signal.SIGKILL,)):
            raise Broken(f"exit code {child.code}: {child.said}")
        last = (child.said.splitlines() or [""])[-1]
        if child.code == 2 and not (last.startswith("hybrid: error: ") and str(disk) in last):
            raise Broken(f"names neither the failure nor a file: {child.said}")
        check_loss(out, child, before)
        self.finish(kind, "cpu", disk, may, *["--overwrite"] * (name == "replaced"))

    def life(self, kind: str, device: str, rng: random.Random) -> None:
        """A run that is killed up to MOST times, half of the time once it learns, and goes on."""
        whole, seconds = self.whole(kind, device)
        disk, before = self.fresh(), list[int | None]([None])
        out, every = disk / "runs" / "run", rng.choice(["0", "0.002", "0.02"])  # 0: after epochs alone
        for _ in range(MOST):
            child = Child(self.going_on(kind, device, out, "--save-every", every), disk)
            child.hear(rng.choice(["saving", "begun"]))
            child.hear("nothing", rng.random() * seconds)
            child.kill()
            if child.ended().code != -signal.SIGKILL:
                break
            self.kills += 1
            before = check_loss(out, child, before)
        self.finish(kind, device, disk, [whole], "--save-every", every)

    def turn(self, what: str, number: int, seed: int) -> None:
        """One turn; the model, the scene or the device follow from the number."""
        rng, rest = random.Random(f"{seed} {number}"), number // len(KINDS)
        kind = KINDS[number % len(KINDS)]
        if what == "faults":
            self.fault(kind, SCENES[rest % len(SCENES)], rng)
        else:
            self.life(kind, self.devices[rest % len(self.devices)], rng)


def main() -> int:
    """The exit code: 1 where something was found."""
    parser = argparse.ArgumentParser("python -m tests.crash", description=__doc__)
    parser.add_argument("--faults", type=int, default=0, metavar="N", help="calls that fail or kill")
    parser.add_argument("--kills", type=int, default=0, metavar="N", help="runs that are killed, some times each")
    parser.add_argument("--device", action="append", help="of runs that are killed: cpu (default), cuda:0; several")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--first", type=int, default=0, metavar="N", help="the number of the first turn")
    given, begun, found = parser.parse_args(), time.monotonic(), 0
    with tempfile.TemporaryDirectory() as folder:
        campaign = Campaign(Path(folder).resolve(), given.device or ["cpu"])
        turns = [(what, given.first + n) for what in ("faults", "kills") for n in range(getattr(given, what))]
        for what, number in tqdm.tqdm(turns):
            try:
                campaign.turn(what, number, given.seed)
            except Broken as broken:
                found += 1
                device = "".join(f" --device {device}" for device in given.device or ())
                again = f"python -m tests.crash --{what} 1 --first {number} --seed {given.seed}{device}"
                print(f"{again}\n    {broken}", flush=True)
                kept = Path("build/crash") / f"{what}-{given.seed}-{number}"
                shutil.rmtree(kept, ignore_errors=True)
                shutil.copytree(campaign.folder / "turn", kept)
    seconds = time.monotonic() - begun
    print(f"{given.faults} faults, {campaign.kills} kills of {given.kills} runs, {found} findings in {seconds:.0f} s")
    return int(found > 0)
