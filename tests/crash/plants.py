"""Mistakes that a campaign has to find, planted into a process."""

import os
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from hybrid.storage import atomic
from hybrid.train.job import Job
from hybrid.train.saving import Saves


def _no_sync() -> None:
    os.fsync = lambda _: None


def _no_file_sync() -> None:
    real, isdir = os.fsync, os.path.isdir
    os.fsync = lambda descriptor: real(descriptor) if isdir(f"/proc/self/fd/{descriptor}") else None


def _no_folder_sync() -> None:
    atomic.settle = lambda _: None  # type: ignore[assignment]


def _in_place() -> None:
    def written(path: Path, pieces: Iterable[Any]) -> Path:
        with open(path, "wb") as file:
            file.writelines(pieces)
            file.flush()
            os.fsync(file.fileno())
        return path

    atomic.written = written


def _never_due() -> None:
    Saves.due = lambda _: False  # type: ignore[method-assign]


def _not_after_epochs() -> None:
    Job.ends_epoch = lambda *_: False  # type: ignore[method-assign]


PLANTS = {
    "nothing is synced": _no_sync,
    "files are not synced": _no_file_sync,
    "folders are not synced": _no_folder_sync,
    "files are written in place": _in_place,
    "no save is due": _never_due,
    "epochs end unsaved": _not_after_epochs,
}
