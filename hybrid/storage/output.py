"""Where may be written: not over what a run writes in its folder, nor, without --overwrite, over a file that is there."""

import fnmatch
import os
from collections.abc import Iterable
from pathlib import Path

RUN, LOCK = "run.json", ".hybrid.lock"  # either tells the folder of a run
NAMES = (  # what a run writes, or writes into
    RUN, LOCK, "checkpoint", "best", "tensorboard", "report.json", "curve.*", "timeline.*", "last.*",
    "config.json", "items.json", "labels.json", "users.json", "vocabulary.json", "words.json",
)  # fmt: skip

HELD: dict[Path, int] = {}  # the folders of runs that this process works in, and the descriptors of their locks


def check(path: str | Path, overwrite: bool, *, own: Path | None = None, inputs: Iterable[str | None] = ()) -> Path:
    """The file that a command is to write; ValueError where it may not. To be called before anything is computed.

    overwrite  the user lets a file be replaced; what a run writes is refused all the same
    own        a name in a run's folder that this command alone writes, so that it replaces what is there
    inputs     what the command reads, which is replaced only with `overwrite`
    """
    path = Path(path)
    refuse_run(path)
    if overwrite or not path.is_file() or os.path.abspath(path).startswith("/dev/"):
        return path
    if any(one and os.path.exists(one) and path.samefile(one) for one in inputs):
        raise ValueError(f"{path}: is read by this command, which would write it; name another, or give --overwrite")
    if path != own:
        raise ValueError(f"{path}: is there already; name another file, or give --overwrite to replace it")
    return path


def refuse_run(path: str | Path) -> None:
    """ValueError where `path` is what a run writes, or within it, in a folder that another process may work in."""
    for whole in {Path(os.path.abspath(path)), Path(os.path.realpath(path))}:
        inside = [name.lower() for name in whole.parts]
        for depth, folder in enumerate(whole.parents, 1):
            if any(os.path.lexists(folder / mark) for mark in (RUN, LOCK)):
                if _writes(inside[-depth]) and not _holds(folder):
                    raise ValueError(f"{path}: is a name that the run in {folder} writes to; name another file")
                break


def _writes(name: str) -> bool:
    return any(fnmatch.fnmatchcase(name, pattern) for pattern in NAMES)


def _holds(folder: Path) -> bool:
    return os.path.realpath(folder) in map(os.path.realpath, HELD)
