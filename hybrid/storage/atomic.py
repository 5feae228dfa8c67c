"""Files that are there whole or not at all.

What is not whole yet has a name that nobody else has, `.NAME.<16 hex digits>.part` beside the file: two writers do not
meet, and no file of the user's is touched.
"""

import contextlib
import os
import re
import secrets
from collections.abc import Iterable
from pathlib import Path

MOST = 100  # characters of a name that its part repeats, so that the part's is not too long


def write(path, pieces: Iterable[bytes]) -> None:
    """Write the pieces to `path` by one rename: a reader, or a crash, sees the file before or the whole new one.

    A link goes on pointing to the file; a pipe or a device, such as /dev/stdout, is written to as it is.

    Raises OSError, naming the path (full disk, unwritable folder); then the file is as it was.
    """
    path = Path(path)
    if path.exists() and not (path.is_file() or path.is_dir()):
        with open(path, "wb") as file:
            file.writelines(pieces)
        return
    path = Path(os.path.realpath(path))
    publish(written(path, pieces), path)


def part(path: Path) -> Path:
    """A name beside `path` that nobody has."""
    return path.with_name(f".{path.name[:MOST]}.{secrets.token_hex(8)}.part")


def written(path: Path, pieces: Iterable[bytes]) -> Path:
    """Write the pieces under a `part` name of `path`, to the disk itself, for `publish`; raises as `write`."""
    target = part(path)
    try:
        with open(target, "xb") as file:
            file.writelines(pieces)
            file.flush()
            os.fsync(file.fileno())
    except BaseException as failure:
        _forget(target)
        raise _named(failure, path) from None
    return target


def publish(target: Path, path: Path) -> None:
    """Give what was `written` its name, and bring the rename itself to the disk; raises as `write`."""
    try:
        os.replace(target, path)
    except BaseException as failure:
        _forget(target)
        raise _named(failure, path) from None
    settle(path.parent)


def settle(folder: Path) -> None:
    """Bring the names of a folder to the disk."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def sweep(folder: Path, names: Iterable[str]) -> None:
    """Remove the parts of these files that a killed process left; only where nobody else writes them."""
    ours = re.compile(rf"\.({'|'.join(map(re.escape, names))})\.[0-9a-f]{{16}}\.part")
    for path in folder.iterdir():
        if ours.fullmatch(path.name):
            path.unlink()


def _forget(target: Path) -> None:
    with contextlib.suppress(OSError):  # what went wrong before is what the user is told
        target.unlink()


def _named(failure: BaseException, path: Path) -> BaseException:
    """The failure, naming the file that the user knows instead of its part."""
    if isinstance(failure, OSError) and failure.errno:
        return OSError(failure.errno, failure.strerror, str(path))
    return failure
