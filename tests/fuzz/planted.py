"""A worker whose readers have faults of every kind that the campaign looks for; test_campaign.py."""

import os
import signal
import sys
import time
from pathlib import Path
from typing import Any

from . import worker
from .subject import Subject
from .subjects import SUBJECTS, written

CONTENT = "a good file\n" * 20


def _faulty(fault: Any) -> Subject:
    """A reader that does well with the good file alone."""

    def read(path: Path) -> None:
        if path.read_bytes() != CONTENT.encode():
            fault()

    return Subject(written("text.txt", CONTENT), read)


def _raises() -> None:
    raise KeyError("a")


def _nameless() -> None:
    raise ValueError("something is wrong")


def _spins() -> None:
    while True:
        pass


def _sleeps() -> None:
    time.sleep(60)


FAULTS = {
    "raises": _raises,
    "nameless": _nameless,
    "hoards": lambda: bytearray(2 * worker.MEMORY),
    "spins": _spins,
    "sleeps": _sleeps,
    "crashes": lambda: os.kill(os.getpid(), signal.SIGSEGV),
}

if __name__ == "__main__":
    worker.SECONDS = 0.2
    SUBJECTS |= {name: _faulty(fault) for name, fault in FAULTS.items()}
    worker.main(*sys.argv[1:])
