"""Whether the user has agreed that a program is run: by naming it to --module, once on this machine, or in HYBRID_MODULES.

A run keeps the path of its program and runs it again when it is opened, so whoever wrote the run chose the path: a stranger's
run would run what the stranger likes.
"""

import argparse
import contextlib
import os
from pathlib import Path
from typing import Any

from ....data.folder import caches

VARIABLE = "HYBRID_MODULES"  # further programs, with os.pathsep between them: for other machines, or an emptied cache
_named: set[str] = set()  # in this process


class Named(argparse.Action):
    """The option by which the user names a program, and so agrees."""

    def __call__(
        self, parser: Any, namespace: argparse.Namespace, values: Any, option_string: str | None = None
    ) -> None:
        """Keep the value FILE.py:FUNCTION, and the agreement."""
        agree(Path(values.rpartition(":")[0]))
        setattr(namespace, self.dest, values)


def agree(program: Path) -> None:
    """Remember that the user has named this program, for commands to come where the cache can be written."""
    path = os.path.realpath(program)
    if path not in _known():
        _named.add(path)
        with contextlib.suppress(OSError), open(_list(), "a") as file:  # where it cannot, the next command asks anew
            file.write(f"{path}\n")


def refuse_stranger(program: Path) -> None:
    """PermissionError for a program that the user has not named."""
    if os.path.realpath(program) not in _known():
        raise PermissionError(
            f"{program}: found a program that the run names and would run, expected one that you have named to --module here;"
            f" read it, then set {VARIABLE}={program}"
        )


def _known() -> set[str]:
    listed = os.environ.get(VARIABLE, "").split(os.pathsep)
    try:
        kept = _list().read_text().splitlines()
    except OSError:  # there is none, or others could write it
        kept = []
    return _named | {os.path.realpath(path) for path in listed if path} | set(kept)


def _list() -> Path:
    from cpu.private import private  # here: with it comes Numba, and a command line is read without

    return private(caches() / "hybrid-engine", "XDG_CACHE_HOME") / "modules.txt"
