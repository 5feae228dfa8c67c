"""One command in a process of its own, forked from one that has imported everything and computed nothing yet.

It tells what it does, tick by tick and save by save, so that whoever looks at what it left knows what should be there.
"""

import contextlib
import itertools
import multiprocessing
import os
import signal
import sys
import time
from collections.abc import Callable
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any, NamedTuple

import hybrid.cli
from hybrid.pvm.judge import curve, panel
from hybrid.storage.checkpoint import CHECKPOINT
from hybrid.train import plots
from hybrid.train.loop import Run
from hybrid.train.saving import Saves

from . import plants
from .calls import Call, catch

NUMBERS = itertools.count()  # of processes
START = multiprocessing.get_context("forkserver")
BY_DESCRIPTOR = ("write", "fsync", "truncate")  # calls whose errors name no file
SECONDS = 120.0  # that a tiny run may take, beside whatever else the machine does
START.set_forkserver_preload(["tests.crash.warm", "tests.crash.child"])


class Fault(NamedTuple):
    """What happens at the n-th call on the disk.

    number   of the call, from 0
    error    the errno that it fails with; 0: the process is killed
    torn     share of a write's bytes that are written before
    lasting  whether all later calls that would change something fail too
    """

    number: int
    error: int
    torn: float = 0.0
    lasting: bool = False


class Task(NamedTuple):
    """What a process does.

    words   the command line, without `hybrid`
    disk    the folder on which calls are watched
    every   whether a save is due after every tick, whatever the clock says
    record  whether every call on the disk is told
    plant   a mistake that is planted, see plants.py
    """

    words: list[str]
    disk: Path
    every: bool = False
    record: bool = False
    fault: Fault | None = None
    plant: str | None = None

    def begun(self) -> "Child":
        """The process."""
        return Child(self)

    def done(self) -> "Child":
        """The process, once it has ended."""
        return Child(self).ended()


class Event(NamedTuple):
    """What a process tells: that it has "begun"; after a "tick", or one after which nothing can be saved, "busy"; before and
    after a save, "saving" and "saved"; at a "fault". Number: of the tick, or the call.
    """

    name: str
    number: int
    seconds: float


class Child:
    """A process at work.

    told     its events and, where they are recorded, calls
    said_at  the file of its output and its errors
    """

    def __init__(self, task: Task):
        self.told: list[Event | Call] = []
        self.said_at = task.disk.parent / f"said-{next(NUMBERS)}.txt"
        self._line, line = START.Pipe(duplex=False)
        self._process = START.Process(target=_run, args=(task, self.said_at, line))
        self._process.start()
        line.close()

    @property
    def pid(self) -> int:
        """Of the process."""
        assert self._process.pid
        return self._process.pid

    def hear(self, name: str, seconds: float = SECONDS) -> bool:
        """Wait for an event of this name; False where the process ends, or the time does, before it."""
        end = time.monotonic() + seconds
        while (left := end - time.monotonic()) > 0 and self._line.poll(left):
            try:
                self.told.append(self._line.recv())
            except (EOFError, OSError):  # also in the middle of an event: it was killed
                return False
            if self.told[-1].name == name:
                return True
        return False

    def kill(self, number: int = signal.SIGKILL) -> None:
        """Send it a signal."""
        with contextlib.suppress(ProcessLookupError):
            os.kill(self.pid, number)

    def ended(self) -> "Child":
        """Itself, once the process has ended; one that does not is killed."""
        self.hear("nothing")
        self._process.join(1.0)
        if self._process.is_alive():
            self._process.kill()
            self._process.join()
        return self

    @property
    def code(self) -> int:
        """Its exit code, -9 where it was killed."""
        code = self._process.exitcode
        assert code is not None
        return code

    @property
    def said(self) -> str:
        """Its output and its errors."""
        return self.said_at.read_text(errors="replace")

    @property
    def events(self) -> list[Event]:
        """What it told beside calls."""
        return [event for event in self.told if isinstance(event, Event)]


def _run(task: Task, said_at: Path, line: Connection) -> None:
    said = os.open(said_at, os.O_CREAT | os.O_WRONLY | os.O_TRUNC)
    os.dup2(said, 1)
    os.dup2(said, 2)
    for module, name in ((plots, "curve"), (plots, "timeline"), (curve, "draw"), (panel, "save")):
        setattr(module, name, lambda *_: None)  # pictures take longest of a small run

    def tell(name: str, number: int) -> None:
        line.send(Event(name, number, time.monotonic()))

    tell("begun", 0)
    _tell(tell)
    if task.every:
        Saves.due = lambda _: True  # type: ignore[method-assign]
    if task.fault:
        catch(task.disk, Failing(task.fault, task.disk, tell))
    if task.record:
        catch(task.disk, lambda call, do: _recorded(line, call, do))
    if task.plant:  # after the calls are caught: those that it leaves out are not told of
        plants.PLANTS[task.plant]()
    sys.exit(hybrid.cli.main(task.words))


def _tell(tell: Callable[[str, int], None]) -> None:
    """Tell of ticks and saves of the run."""
    note, save = Run._note, Run.save

    def noting(run: Run, *given: Any) -> None:
        note(run, *given)
        tell("busy" if run.job.busy(run.model) else "tick", run.model.tick)

    def saving(run: Run, name: str = CHECKPOINT) -> None:
        if name != CHECKPOINT:
            return save(run, name)
        tell("saving", run.model.tick)
        save(run, name)
        return tell("saved", run.model.tick)

    Run._note, Run.save = noting, saving  # type: ignore[method-assign]


def _recorded(line: Connection, call: Call, do: Callable[[Call], Any]) -> Any:
    found = do(call)
    line.send(call)
    return found


class Failing:
    """Lets calls happen up to the one at which the fault is."""

    def __init__(self, fault: Fault, disk: Path, tell: Callable[[str, int], None]):
        self.fault, self.disk, self.tell, self.number = fault, disk, tell, -1

    def __call__(self, call: Call, do: Callable[[Call], Any]) -> Any:
        """What the call returns; or the fault."""
        self.number += 1
        fault = self.fault
        if self.number < fault.number or (self.number > fault.number and not (fault.lasting and call.name != "open")):
            return do(call)
        self.tell("fault", self.number)
        if call.data and fault.torn:
            do(call._replace(data=call.data[: int(fault.torn * len(call.data))]))
        if not fault.error:
            os.kill(os.getpid(), signal.SIGKILL)
        named = () if call.name in BY_DESCRIPTOR else (str(self.disk / call.path),)
        raise OSError(fault.error, os.strerror(fault.error), *named)
