"""A folder in which the disk fails, or the process dies, at any call."""

import builtins
import io
import os
import signal
from collections.abc import Callable
from typing import Any, NamedTuple

CALLS = ("open", "write", "fsync", "ftruncate", "replace", "mkdir", "rmdir", "unlink")


class Fault(NamedTuple):
    """What happens at the n-th call on the disk.

    number   of the call, from 0
    error    the errno that it fails with; 0: the process is killed
    torn     share of a write's bytes that are written before
    lasting  whether all later calls fail too
    """

    number: int
    error: int = 0
    torn: float = 0.0
    lasting: bool = False


class Disk:
    """Calls of this process that change what is in a folder happen up to the one at which the fault is.

    Caught are functions of `os` and what `open` makes, so a file's writes are seen as its buffer hands them to the system.

    tell  gets the fault's call, ("fault", number), and may raise in the place of it
    put   sets a module's attribute
    """

    def __init__(self, folder: str, fault: Fault, tell: Callable[[str, int], Any], put: Any = setattr):
        self.folder, self.fault, self.tell, self.number = folder, fault, tell, 0
        for name in CALLS:
            put(os, name, self.caught(name, getattr(os, name)))
        real = builtins.open

        def opened(path: Any, mode: str = "r", buffering: int = -1, *text: Any, **named: Any) -> Any:
            if isinstance(path, int) or not self.within(path) or not set(mode) & set("wxa+"):
                return real(path, mode, buffering, *text, **named)
            raw = self.meet(path, lambda _: Watched(path, mode.replace("b", "").replace("t", "")))
            raw.disk = self
            buffer = io.BufferedRandom(raw) if "+" in mode else io.BufferedWriter(raw)
            return buffer if "b" in mode else io.TextIOWrapper(buffer, *text, **named)

        put(builtins, "open", opened)
        put(io, "open", opened)

    def within(self, path: Any) -> bool:
        """Whether a file or a descriptor is in the folder."""
        whole = os.readlink(f"/proc/self/fd/{path}") if isinstance(path, int) else os.path.abspath(os.fspath(path))
        return f"{whole}/".startswith(f"{self.folder}/")

    def caught(self, name: str, real: Callable[..., Any]) -> Callable[..., Any]:
        """A function of `os` that asks first."""

        def function(first: Any, *more: Any, **named: Any) -> Any:
            if not self.within(first) or (name == "open" and not more[0] & (os.O_CREAT | os.O_TRUNC)):
                return real(first, *more, **named)
            if name == "write":
                return self.meet(first, lambda share: real(first, more[0][: int(share * len(more[0]))]))
            return self.meet(first, lambda share: real(first, *more, **named) if share == 1 else None)

        return function

    def meet(self, path: Any, do: Callable[[float], Any]) -> Any:
        """The call, as a whole; or the fault. `do` takes the share of the bytes that come to the disk."""
        number, self.number = self.number, self.number + 1
        if number < self.fault.number or (number > self.fault.number and not self.fault.lasting):
            return do(1)
        self.tell("fault", number)
        if self.fault.torn and isinstance(path, int):
            do(self.fault.torn)
        if not self.fault.error:
            os.kill(os.getpid(), signal.SIGKILL)
        raise OSError(self.fault.error, os.strerror(self.fault.error), *([] if isinstance(path, int) else [str(path)]))


class Watched(io.FileIO):
    """An open file that asks before it writes."""

    disk: Disk

    def write(self, data: Any) -> int:
        """What the buffer hands to the system."""
        real = super().write
        return int(self.disk.meet(self.fileno(), lambda share: real(bytes(data)[: int(share * len(data))])))
