"""File access: bounded reads with named errors, atomic writes, and checks of output paths.

A file being written has a temporary name, `.NAME.<16 hex digits>.part`, in the same folder. So writers never share a file,
and user files are untouched.
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

STREAMS = ("/dev", "/dev/fd", "/proc/self/fd")  # folders of the user's own pipes: /dev/stdin, /dev/fd/63
# Maximum bytes of a line of text: far beyond any example, it bounds memory for input without line ends.
LONGEST = 2**26
MOST = 100  # characters of a file name kept in its temporary name, which must not be too long
RUN, LOCK = "run.json", ".hybrid.lock"  # either marks the folder of a run
NAMES = (  # files and folders that a run writes
    RUN, LOCK, "checkpoint", "best", "tensorboard", "report.json", "curve.*", "timeline.*", "last.*",
    "config.json", "items.json", "labels.json", "users.json", "vocabulary.json", "words.json",
)  # fmt: skip
HELD: dict[Path, int] = {}  # folders of the runs that this process works on -> descriptors of their locks

Pieces = Iterable[bytes | memoryview]


def expect_file(path: str | Path) -> None:
    """Raises OSError, with the name, unless it is a file or a folder, or a link to one: reading a pipe could block forever.

    Folders are left to the function that opens them; streams passed by the user are allowed, see STREAMS.
    """
    mode = os.stat(path).st_mode
    if not (stat.S_ISREG(mode) or stat.S_ISDIR(mode) or os.path.dirname(path) in STREAMS):
        raise OSError(f"{path}: found no regular file, expected one; put the file itself in its place")


def read(path: str | Path) -> Any:
    """Parses a file: TOML if its name ends in .toml, otherwise JSON.

    Raises OSError for an unreadable or special file, and ValueError, with its name, for invalid content.
    """
    path = Path(path)
    expect_file(path)
    kind, parse = ("TOML", tomllib.loads) if path.suffix == ".toml" else ("JSON", json.loads)
    try:
        return parse(path.read_text(encoding="utf-8"))
    except RecursionError:
        raise ValueError(f"{path}: found values nested too deeply, expected {kind} with a few levels") from None
    except ValueError as error:  # including UTF-8 errors
        raise ValueError(f"{path}: not {kind} ({error}); the file was altered or truncated") from None


def numbered_lines(path: str | Path) -> Iterator[tuple[int, str]]:
    """Yields number and text of every line of a UTF-8 file, without line ends.

    Raises OSError for an unreadable file; ValueError, with the line, for bytes that are not UTF-8 and for overlong lines.
    """
    with open(path, "rb") as file:
        number = 0
        while line := file.readline(LONGEST + 1):
            number += 1
            if len(line) > LONGEST:
                raise ValueError(f"{path}, line {number}: more than {LONGEST:,} bytes long; expected lines of text")
            try:
                yield number, line.decode("utf-8-sig" if number == 1 else "utf-8").rstrip("\r\n")
            except UnicodeDecodeError as error:
                raise ValueError(f"{path}, line {number}: not UTF-8 ({error.reason}); expected text") from None


def words(value: Any) -> bool:
    """True if a parsed value is a list of strings."""
    return isinstance(value, list) and all(isinstance(one, str) for one in value)


@contextlib.contextmanager
def named(path: object) -> Iterator[None]:
    """A context that adds a file's name to ValueErrors and IndexErrors about its content."""
    try:
        yield
    except (ValueError, IndexError) as error:
        if str(path) in str(error):
            raise
        # Not those with other arguments, as of Unicode.
        kind = IndexError if isinstance(error, IndexError) else ValueError
        raise kind(f"{path}: {error}") from error


def check(path: str | Path, overwrite: bool, *, own: Path | None = None, inputs: Iterable[str | None] = ()) -> Path:
    """Returns the output path of a command; ValueError if it must not be written. Call it before any computation.

    overwrite  allows replacing a file, but never one that a run writes
    own        a name in a run's folder that only this command writes, and may replace
    inputs     files that the command reads, replaced only with `overwrite`
    """
    path = Path(path)
    refuse_run(path)
    if overwrite or not path.is_file() or os.path.abspath(path).startswith("/dev/"):
        return path
    if any(one and os.path.exists(one) and path.samefile(one) for one in inputs):
        raise ValueError(f"{path}: is both read and written by this command; name another file, or give --overwrite")
    if path != own:
        raise ValueError(f"{path}: already exists; name another file, or give --overwrite to replace it")
    return path


def refuse_run(path: str | Path) -> None:
    """Raises ValueError if `path` is, or is within, a file of a run that another process may work on."""
    for whole in {Path(os.path.abspath(path)), Path(os.path.realpath(path))}:
        inside = [name.lower() for name in whole.parts]
        for depth, folder in enumerate(whole.parents, 1):
            if any(os.path.lexists(folder / mark) for mark in (RUN, LOCK)):
                ours = os.path.realpath(folder) in map(os.path.realpath, HELD)
                if not ours and any(fnmatch.fnmatchcase(inside[-depth], pattern) for pattern in NAMES):
                    raise ValueError(f"{path}: is a name that the run in {folder} writes to; name another file")
                break


def write(path: str | Path, pieces: Pieces) -> None:
    """Writes the pieces to `path` atomically by rename: readers, also after a crash, see the old file or the new one.

    A symbolic link keeps pointing to the file; a pipe or a device, such as /dev/stdout, is written directly.

    Raises OSError, with the path (full disk, unwritable folder), and ValueError for a file of a run that this process does
    not work on; then the file is unchanged.
    """
    path = Path(path)
    if path.exists() and not (path.is_file() or path.is_dir()):
        with naming(path), open(path, "wb") as file:
            file.writelines(pieces)
        return
    path = Path(os.path.realpath(path))
    publish(written(path, pieces), path)


def part(path: Path) -> Path:
    """Returns a new temporary name next to `path`; ValueError if that belongs to a run, see `refuse_run`."""
    if not path.name:
        raise ValueError(f"{path}: is a folder, expected a file to write; add a name")
    refuse_run(path)
    return path.with_name(f".{path.name[:MOST]}.{secrets.token_hex(8)}.part")


def written(path: Path, pieces: Pieces) -> Path:
    """Writes the pieces to a `part` of `path` and syncs it; returns it, for `publish`. Raises as `write` does."""
    target = part(path)
    with _naming_and_forgetting(path, target), open(target, "xb") as file:
        file.writelines(pieces)
        file.flush()
        os.fsync(file.fileno())
    return target


def publish(target: Path, path: Path) -> None:
    """Renames the result of `written` to `path` and syncs the folder. Raises as `write` does."""
    with _naming_and_forgetting(path, target):
        os.replace(target, path)
    settle(path.parent)


def settle_file(path: Path) -> None:
    """Syncs a file written by a library to disk, before it is published."""
    with open(path, "rb+") as file:
        os.fsync(file.fileno())


def settle(folder: Path) -> None:
    """Syncs the names in a folder, new and removed ones."""
    with naming(folder):
        descriptor = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)


def make(folder: Path) -> None:
    """Creates a folder and missing parents, each synced to disk; an existing one is kept."""
    if not folder.is_dir():
        if not folder.parent.exists():
            make(folder.parent)
        folder.mkdir(exist_ok=True)
        settle(folder.parent)


def sweep(folder: Path, names: Iterable[str]) -> None:
    """Removes temporary files of these names left by a killed process. Call it only if no other process writes them."""
    ours = re.compile(rf"\.({'|'.join(map(re.escape, names))})\.[0-9a-f]{{16}}\.part")
    for path in folder.iterdir():
        if ours.fullmatch(path.name):
            path.unlink()


@contextlib.contextmanager
def naming(path: Path) -> Iterator[None]:
    """A context in which OS errors report the user's file instead of its temporary file or none."""
    try:
        yield
    except OSError as failure:
        if failure.errno:
            raise OSError(failure.errno, failure.strerror, str(path)) from None
        raise


@contextlib.contextmanager
def _naming_and_forgetting(path: Path, target: Path) -> Iterator[None]:
    """A `naming` context that removes the temporary file `target` on any failure."""
    with naming(path):
        try:
            yield
        except BaseException:
            _forget(target)
            raise


def _forget(target: Path) -> None:
    with contextlib.suppress(OSError):  # keeps the original error
        target.unlink()
