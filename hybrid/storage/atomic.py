"""Files that are there whole or not at all.

A file that is being written has a name of its own, `.NAME.<16 hex digits>.part`, beside the one it will have: two writers
never write to the same file, and no file of the user's is touched.
"""

import contextlib
import os
import re
import secrets
from collections.abc import Iterable, Iterator
from pathlib import Path

from .output import refuse_run

MOST = 100  # characters of a file's name in that of its part, so that the longer name is not too long

Pieces = Iterable[bytes | memoryview]


def write(path: str | Path, pieces: Pieces) -> None:
    """Write the pieces to `path` by one rename: after a crash, and for any reader, it is the old file or the new one, whole.

    A symbolic link goes on pointing to the file; a pipe or a device, such as /dev/stdout, is written to directly.

    Raises OSError, naming the path (full disk, unwritable folder), and ValueError for a file of a run that this process does
    not work on; then the file is as it was.
    """
    path = Path(path)
    if path.exists() and not (path.is_file() or path.is_dir()):
        with open(path, "wb") as file:
            file.writelines(pieces)
        return
    path = Path(os.path.realpath(path))
    publish(written(path, pieces), path)


def part(path: Path) -> Path:
    """A new name for a file beside `path`; ValueError where that is a run's own, see `output.refuse_run`."""
    refuse_run(path)
    return path.with_name(f".{path.name[:MOST]}.{secrets.token_hex(8)}.part")


def written(path: Path, pieces: Pieces) -> Path:
    """Write the pieces to a `part` of `path`, through to the disk; returns it, for `publish`. Raises as `write` does."""
    target = part(path)
    with naming(path), _forgotten_unless_done(target), open(target, "xb") as file:
        file.writelines(pieces)
        file.flush()
        os.fsync(file.fileno())
    return target


def publish(target: Path, path: Path) -> None:
    """Give what was `written` its final name, `path`, through to the disk. Raises as `write` does."""
    with naming(path), _forgotten_unless_done(target):
        os.replace(target, path)
    settle(path.parent)


def settle_file(path: Path) -> None:
    """Bring what a library wrote to a file through to the disk, before it is published."""
    with open(path, "rb+") as file:
        os.fsync(file.fileno())


def settle(folder: Path) -> None:
    """Bring the names in a folder, new and removed ones, through to the disk; Windows does so by itself and opens no folder."""
    if not hasattr(os, "O_DIRECTORY"):
        return
    with naming(folder):
        descriptor = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)


def make(folder: Path) -> None:
    """Make a folder, and those above it that are missing, each through to the disk; one that is there stays as it is."""
    if not folder.is_dir():
        if not folder.parent.exists():
            make(folder.parent)
        folder.mkdir(exist_ok=True)
        settle(folder.parent)


def sweep(folder: Path, names: Iterable[str]) -> None:
    """Remove the parts of files of these names that a killed process left. Call it only where nobody else writes them."""
    ours = re.compile(rf"\.({'|'.join(map(re.escape, names))})\.[0-9a-f]{{16}}\.part")
    for path in folder.iterdir():
        if ours.fullmatch(path.name):
            path.unlink()


@contextlib.contextmanager
def naming(path: Path) -> Iterator[None]:
    """A context in which errors of the system name the file that the user knows, not its part, nor none."""
    try:
        yield
    except OSError as failure:
        if failure.errno:
            raise OSError(failure.errno, failure.strerror, str(path)) from None
        raise


@contextlib.contextmanager
def _forgotten_unless_done(target: Path) -> Iterator[None]:
    try:
        yield
    except BaseException:
        _forget(target)
        raise


def _forget(target: Path) -> None:
    with contextlib.suppress(OSError):  # what went wrong before is what the user is told
        target.unlink()
