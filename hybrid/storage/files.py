"""Files that are read within bounds and by name, that are there whole or not at all, and where a command may write them.

A file that is being written has a name of its own, `.NAME.<16 hex digits>.part`, beside the one it will have: two writers
never write to the same file, and no file of the user's is touched.
"""

import contextlib
import fnmatch
import json
import os
import re
import secrets
import stat
import tomllib
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

STREAMS = ("/dev", "/dev/fd", "/proc/self/fd")  # where the user's own pipes have names: /dev/stdin, /dev/fd/63
# Bytes of a line of text: far beyond any example, and no reason to fill the memory with what has no line ends.
LONGEST = 2**26
MOST = 100  # characters of a file's name in that of its part, so that the longer name is not too long
RUN, LOCK = "run.json", ".hybrid.lock"  # either tells the folder of a run
NAMES = (  # what a run writes, or writes into
    RUN, LOCK, "checkpoint", "best", "tensorboard", "report.json", "curve.*", "timeline.*", "last.*",
    "config.json", "items.json", "labels.json", "users.json", "vocabulary.json", "words.json",
)  # fmt: skip
HELD: dict[Path, int] = {}  # the folders of runs that this process works in, and the descriptors of their locks

Pieces = Iterable[bytes | memoryview]


def expect_file(path: str | Path) -> None:
    """OSError, naming it, for what is neither a file, a folder nor a link to one: a stranger's pipe would never end.

    A folder is left to whoever opens it. So is what the user himself hands over: see STREAMS.
    """
    mode = os.stat(path).st_mode
    if not (stat.S_ISREG(mode) or stat.S_ISDIR(mode) or os.path.dirname(path) in STREAMS):
        raise OSError(f"{path}: found no regular file, expected one; put the file itself in its place")


def read(path: str | Path) -> Any:
    """What a file holds: TOML where its name ends in .toml, else JSON.

    Raises OSError for a file that cannot be read or is none, and ValueError, naming it, for one that holds something else.
    """
    path = Path(path)
    expect_file(path)
    kind, parse = ("TOML", tomllib.loads) if path.suffix == ".toml" else ("JSON", json.loads)
    try:
        return parse(path.read_text(encoding="utf-8"))
    except RecursionError:
        raise ValueError(f"{path}: found values nested too deeply, expected {kind} with a few levels") from None
    except ValueError as error:  # of UTF-8 too
        raise ValueError(f"{path}: not {kind} ({error}); the file was altered or cut off") from None


def numbered_lines(path: str | Path) -> Iterator[tuple[int, str]]:
    """Number and text of every line of a UTF-8 file, without its end.

    Raises OSError for an unreadable file; ValueError, with the line, for bytes that are not UTF-8 and for endless lines.
    """
    with open(path, "rb") as file:
        number = 0
        while line := file.readline(LONGEST):
            number += 1
            if len(line) == LONGEST:
                raise ValueError(f"{path}, line {number}: more than {LONGEST:,} bytes long; expected lines of text")
            try:
                yield number, line.decode("utf-8-sig" if number == 1 else "utf-8").rstrip("\r\n")
            except UnicodeDecodeError as error:
                raise ValueError(
                    f"{path}, line {number}: not UTF-8 ({error.reason}); expected a file of text"
                ) from None


def words(value: Any) -> bool:
    """Whether what was read is a list of strings."""
    return isinstance(value, list) and all(isinstance(one, str) for one in value)


@contextlib.contextmanager
def named(path: object) -> Iterator[None]:
    """A context in which the content of a file is used: what is refused there is refused by the name of the file."""
    try:
        yield
    except (ValueError, IndexError) as error:
        if str(path) in str(error):
            raise
        raise type(error)(f"{path}: {error}") from error


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
                ours = os.path.realpath(folder) in map(os.path.realpath, HELD)
                if not ours and any(fnmatch.fnmatchcase(inside[-depth], pattern) for pattern in NAMES):
                    raise ValueError(f"{path}: is a name that the run in {folder} writes to; name another file")
                break


def write(path: str | Path, pieces: Pieces) -> None:
    """Write the pieces to `path` by one rename: after a crash, and for any reader, it is the old file or the new one, whole.

    A symbolic link goes on pointing to the file; a pipe or a device, such as /dev/stdout, is written to directly.

    Raises OSError, naming the path (full disk, unwritable folder), and ValueError for a file of a run that this process does
    not work on; then the file is as it was.
    """
    path = Path(path)
    if path.exists() and not (path.is_file() or path.is_dir()):
        with naming(path), open(path, "wb") as file:
            file.writelines(pieces)
        return
    path = Path(os.path.realpath(path))
    publish(written(path, pieces), path)


def part(path: Path) -> Path:
    """A new name for a file beside `path`; ValueError where that is a run's own, see `refuse_run`."""
    if not path.name:
        raise ValueError(f"{path}: is a folder, expected a file to write; add a name")
    refuse_run(path)
    return path.with_name(f".{path.name[:MOST]}.{secrets.token_hex(8)}.part")


def written(path: Path, pieces: Pieces) -> Path:
    """Write the pieces to a `part` of `path`, through to the disk; returns it, for `publish`. Raises as `write` does."""
    target = part(path)
    with _naming_and_forgetting(path, target), open(target, "xb") as file:
        file.writelines(pieces)
        file.flush()
        os.fsync(file.fileno())
    return target


def publish(target: Path, path: Path) -> None:
    """Give what was `written` its final name, `path`, through to the disk. Raises as `write` does."""
    with _naming_and_forgetting(path, target):
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
def _naming_and_forgetting(path: Path, target: Path) -> Iterator[None]:
    """As `naming`; and the part, `target`, is removed on any failure."""
    with naming(path):
        try:
            yield
        except BaseException:
            _forget(target)
            raise


def _forget(target: Path) -> None:
    with contextlib.suppress(OSError):  # what went wrong before is what the user is told
        target.unlink()
