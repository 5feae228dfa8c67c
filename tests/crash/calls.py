"""Every call by which this process changes a folder, handed to somebody who lets it happen, or not, or in part.

Caught are the functions of `os` and what `open` makes, so a file's writes are seen as its buffer hands them to the system.
Code in C that writes by itself is not caught; nothing that a run writes is written so.
"""

import builtins
import io
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple


class Call(NamedTuple):
    """One call.

    name    "create" a file, "open" one that is there or a folder, "truncate" one to `at` bytes, by `open` too, "write" `data`
            to it at `at`; "mkdir", "rmdir", "unlink"; "replace": a file takes the name `target`; "fsync" a file or a folder
    path    relative to the folder, "" for itself, as `target`
    """

    name: str
    path: str
    target: str = ""
    at: int = 0
    data: bytes = b""


Meet = Callable[[Call, Callable[[Call], Any]], Any]
NAMES = ("mkdir", "rmdir", "unlink")


def catch(folder: Path, meet: Meet) -> None:
    """From now on every call of this process on `folder` and what is in it is `meet(call, do)`, which may call `do(call)`."""
    catcher = _Catcher(str(folder), meet)
    real = {name: getattr(os, name) for name in (*NAMES, "open", "write", "fsync", "ftruncate", "replace")}
    for name in real:
        setattr(os, name, catcher.caught(name, real[name]))
    real_open = builtins.open

    def opened(path: Any, mode: str = "r", buffering: int = -1, *text: Any, **named: Any) -> Any:
        if isinstance(path, int) or catcher.within(path) is None:
            return real_open(path, mode, buffering, *text, **named)
        if not set(mode) & set("wxa+"):
            return meet(
                Call("open", catcher.within(path) or ""), lambda _: real_open(path, mode, buffering, *text, **named)
            )
        raw = meet(catcher.opening(path, "w" in mode), lambda _: _File(path, mode.replace("b", "").replace("t", "")))
        raw.catcher = catcher
        buffer = io.BufferedRandom(raw) if "+" in mode else io.BufferedWriter(raw)
        return buffer if "b" in mode else io.TextIOWrapper(buffer, *text, **named)

    builtins.open = io.open = opened  # type: ignore[assignment]


class _Catcher:
    """Turns calls into `Call`s."""

    def __init__(self, folder: str, meet: Meet):
        self.folder, self.meet = folder, meet

    def within(self, path: Any) -> str | None:
        """The path of a file or a descriptor relative to the folder; None outside."""
        whole = os.readlink(f"/proc/self/fd/{path}") if isinstance(path, int) else os.path.abspath(os.fspath(path))
        return (
            ""
            if whole == self.folder
            else whole[len(self.folder) + 1 :]
            if whole.startswith(self.folder + "/")
            else None
        )

    def opening(self, path: Any, truncates: bool) -> Call:
        """The call that opens a file for writing."""
        within = self.within(path) or ""
        return Call("create" if not os.path.exists(path) else "truncate" if truncates else "open", within)

    def caught(self, name: str, real: Callable[..., Any]) -> Callable[..., Any]:
        """A function of `os` that asks first."""

        def function(first: Any, *more: Any, **named: Any) -> Any:
            if (path := self.within(first)) is None:
                return real(first, *more, **named)
            call = Call(name, path)
            if name == "open" and more[0] & os.O_CREAT:
                call = self.opening(first, bool(more[0] & os.O_TRUNC))
            elif name == "write":
                return self.write(first, more[0], lambda data: real(first, data))
            elif name == "ftruncate":
                call = Call("truncate", path, at=more[0])
            elif name == "replace":
                call = Call(name, path, self.within(more[0]) or "")
            return self.meet(call, lambda _: real(first, *more, **named))

        return function

    def write(self, descriptor: int, data: Any, do: Callable[[bytes], int]) -> int:
        """Write where the descriptor stands."""
        at = os.lseek(descriptor, 0, os.SEEK_CUR)
        call = Call("write", self.within(descriptor) or "", at=at, data=bytes(data))
        return int(self.meet(call, lambda call: do(call.data)))


class _File(io.FileIO):
    """An open file that asks before it writes."""

    catcher: _Catcher

    def write(self, data: Any) -> int:
        """What the buffer hands to the system."""
        return self.catcher.write(self.fileno(), data, super().write)
