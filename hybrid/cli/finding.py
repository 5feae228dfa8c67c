"""What `hybrid doctor` found of one thing: whether it is there, and the command that mends it."""

import importlib.metadata
from typing import Any


def finding(name: str, ok: bool, found: str, remedy: str | None = None, needed: bool = True) -> dict[str, Any]:
    """A thing that was looked at; the remedy, a command or a sentence, is kept where the thing is not in order."""
    return {"name": name, "ok": ok, "needed": needed, "found": found, "remedy": None if ok else remedy}


def failure(name: str, error: Exception, remedy: str) -> dict[str, Any]:
    """What raised says "cause; remedy", or the cause alone."""
    cause, _, said = str(error).partition("; ")
    return finding(name, False, cause, said or remedy, needed=False)


def version(package: str) -> tuple[str, bool]:
    """The version of an installed package, and True; "not installed" and False where it is not."""
    try:
        return importlib.metadata.version(package), True
    except importlib.metadata.PackageNotFoundError:
        return "not installed", False
