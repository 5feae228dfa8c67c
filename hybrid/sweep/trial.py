"""One trial: a `hybrid train` in a process of its own, so that whatever ends it ends no other.

`perform` is all that an executor is given: a function of plain values that needs the same files, and nothing else of the
process that asks for it.
"""

import json
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any, NamedTuple

from ..ranks.world import outside
from ..train.store import REPORT, RUN
from .asked import words

POLL = 0.1  # seconds between two looks at the stop file
ERROR = "hybrid: error: "


class Task(NamedTuple):
    """A trial that is to be trained, to its end or to a length.

    model    as `hybrid train` names it
    options  fixed and varied ones
    length   what the run goes to, such as {"epochs": 4}; {}: what its options say
    threads  CPU threads
    folder   of the run; what the process says goes to a .log beside it
    stop     a file: once it is there the trial saves itself and ends
    """

    model: str
    options: dict[str, Any]
    length: dict[str, int]
    threads: int
    folder: str
    stop: str


class Outcome(NamedTuple):
    """What became of it: its report; or why it failed; neither where it was stopped."""

    report: dict[str, Any] | None = None
    cause: str | None = None


def perform(task: Task) -> Outcome:
    """Train a trial; one that was begun before goes on from its last save."""
    folder, stop = Path(task.folder), Path(task.stop)
    log = folder.with_name(folder.name + ".log")
    asked = False
    with open(log, "ab") as said:
        begins = said.tell()
        process = subprocess.Popen(
            [sys.executable, "-m", "hybrid.sweep.child", *command(task)],
            stdin=subprocess.PIPE,
            stdout=said,
            stderr=said,
            env=outside(),
            start_new_session=True,  # Ctrl-C is for the sweep, which then asks its trials to stop: once
        )
        assert process.stdin
        with process.stdin:
            while process.poll() is None:
                if stop.exists() and not asked:
                    asked = True
                    process.stdin.close()
                _wait(process)
    if process.returncode == 0:
        return Outcome(report=json.loads((folder / REPORT).read_bytes()))
    return Outcome() if asked else Outcome(cause=_cause(process.returncode, log, begins))


def command(task: Task) -> list[str]:
    """The words after `hybrid` that train the trial, or go on with it."""
    folder, machine = Path(task.folder), {"threads": task.threads}
    if (folder / RUN).exists():
        return ["train", *words({"resume": task.folder} | machine | task.length)]
    return ["train", task.model, *words(task.options | machine | task.length | {"out": task.folder})]


def _wait(process: subprocess.Popen[bytes]) -> None:
    try:
        process.wait(POLL)
    except subprocess.TimeoutExpired:
        pass


def _cause(code: int, log: Path, begins: int) -> str:
    """Why a trial failed: the signal that ended it, or the last that it said."""
    if code < 0 or code > 128:
        number = -code if code < 0 else code - 128
        return f"ended by {signal.Signals(number).name}"
    lines = log.read_bytes()[begins:].decode(errors="replace").split("\n")
    last = next((line.strip() for line in reversed(lines) if line.strip()), f"ended with exit code {code}")
    return last.removeprefix(ERROR)
