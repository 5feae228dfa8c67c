"""Files of JSON or TOML, which strangers may have written: what they hold, or a ValueError that names the file."""

import contextlib
import json
import os
import stat
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

STREAMS = ("/dev", "/dev/fd", "/proc/self/fd")  # where the user's own pipes have names: /dev/stdin, /dev/fd/63


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
