"""Messages and progress of commands on stderr, and the guarded stdout. Errors are printed elsewhere, unconditionally.

Names and words may come from untrusted files: control characters are printed escaped, such as \\x1b.
"""

import contextlib
import functools
import gc
import os
import sys
import time
from collections.abc import Iterable, Iterator
from typing import Any, TextIO

MINUTE = 60.0
LINE = "{desc}: {percentage:.0f} %, {n_fmt} of {total_fmt}{unit}, {elapsed}{postfix}"  # in a log

CONTROLS = {code: f"\\x{code:02x}" for code in (*range(32), *range(127, 160)) if chr(code) not in "\t\n"}
TURNS = {code: f"\\u{code:04x}" for code in (*range(0x2028, 0x202F), *range(0x2066, 0x206A))}  # line, direction
OUTPUT = "standard output"

quiet = False  # True: no notes, no bars
mute = False  # True: no `say` either, as on every rank except 0


def note(text: str) -> None:
    """Prints an optional message, unless quiet or mute."""
    if not (quiet or mute):
        tell(text)


def say(text: str) -> None:
    """Prints an essential message other than an error, unless mute."""
    if not mute:
        tell(text)


def tell(text: str) -> None:
    """Writes a line to stderr, even if quiet or mute."""
    print(f"hybrid: {shown(text)}", file=STDERR, flush=True)


def shown(text: str) -> str:
    """Returns the text with control characters escaped, except tabs and newlines."""
    return text.translate(CONTROLS)


def line(text: str) -> str:
    """Returns the text as one line: `shown`, with newlines, line separators and bidirectional controls escaped too."""
    return shown(text).replace("\n", "\\n").translate(TURNS)


def stand_in() -> None:
    """Replaces standard streams that were closed before the command began (`>&-`) by the null device."""
    for name in ("stdout", "stderr"):
        if getattr(sys, name) is None:
            setattr(sys, name, open(os.devnull, "w", encoding="utf-8"))


def drop(stream: TextIO) -> None:
    """Redirects a stream to the null device: its buffer cannot be written, and would fail again at process exit."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())


def leave() -> None:
    """Flushes stderr at the end of a command; a failure does not change the exit code."""
    try:
        sys.stderr.flush()
    except OSError:
        drop(sys.stderr)


@contextlib.contextmanager
def guarded() -> Iterator[None]:
    """A context in which a terminal receives output as `shown`; files and pipes receive every byte.

    An OSError of printing names OUTPUT. References to the stream that outlive the context write to the file unchanged.
    """
    stream = Output(sys.stdout, sys.stdout.isatty())
    try:
        with contextlib.redirect_stdout(stream):
            yield
    finally:
        stream.guards = False


def bar(
    total: int | None,
    label: str,
    unit: str,
    initial: int = 0,
    items: Iterable[Any] | None = None,
    passing: bool = False,
    scaled: bool = False,
) -> Any:
    """Returns a tqdm bar on a terminal; otherwise one log line a minute and at every postfix.

    items    iterable to wrap, if any
    passing  a secondary bar: on terminals only, shown after two seconds, removed at its end
    scaled   large numbers as 1.23M
    """
    from tqdm import tqdm

    there = sys.stderr.isatty()
    off = quiet or mute or (passing and not there)
    common: dict[str, Any] = {"total": total, "desc": label, "unit": f" {unit}", "initial": initial, "disable": off}
    common["unit_scale"] = scaled
    if there:
        return tqdm(items, file=STDERR, mininterval=0.5, delay=2 * passing, leave=not passing, **common)
    return tqdm(items, file=Lines(STDERR), mininterval=MINUTE, bar_format=LINE, **common)


PATIENCE = 1.0  # seconds of silent compilation


@functools.cache
def note_compiling() -> None:
    """Announces slow kernel compilation, once per process, and suspends the garbage collector while it runs.

    Compilation creates millions of objects that live until its end; scanning them costs a twentieth of the time.
    """
    from numba.core import event

    event.register("numba:compile", _compiling(event.Listener))


def _compiling(base: type) -> Any:
    class Compiling(base):  # type: ignore[misc]
        """A listener called at the start and end of each compilation, including nested ones."""

        def __init__(self) -> None:
            self.depth, self.spent, self.since, self.noted, self.collecting = 0, 0.0, 0.0, False, False

        def on_start(self, event: Any) -> None:
            if not self.depth:
                self.since, self.collecting = time.perf_counter(), gc.isenabled()
                gc.disable()
            self.depth += 1
            self._note()

        def on_end(self, event: Any) -> None:
            self._note()
            self.depth -= 1
            if not self.depth:
                self.spent += time.perf_counter() - self.since
                if self.collecting:
                    gc.enable()

        def _note(self) -> None:
            if not self.noted and self.spent + time.perf_counter() - self.since > PATIENCE:
                self.noted = True
                note("compiling kernels, once on this machine: up to a quarter of a minute")

    return Compiling()


class Stderr:
    """A proxy of the current sys.stderr. It drops output that cannot be written, so that no work fails for it."""

    def write(self, text: str) -> int:
        """Writes the text if possible; returns its length."""
        with contextlib.suppress(OSError, ValueError):  # disk full, broken pipe; closed
            sys.stderr.write(text)
        return len(text)

    def flush(self) -> None:
        with contextlib.suppress(OSError, ValueError):
            sys.stderr.flush()

    def __getattr__(self, name: str) -> Any:
        return getattr(sys.stderr, name)


STDERR: Any = Stderr()


class Lines:
    """A file for tqdm that turns updates of one terminal line into separate lines."""

    def __init__(self, file: TextIO):
        self._file = file

    def write(self, text: str) -> None:
        """Writes the stripped text as a line, unless it is empty."""
        if shown := text.strip():
            self._file.write(shown + "\n")

    def flush(self) -> None:
        self._file.flush()


class Output:
    """A proxy of a file whose write errors name OUTPUT; guards: text is written as `shown`."""

    def __init__(self, file: TextIO, guards: bool):
        self._file = file
        self.guards = guards

    def write(self, text: str) -> int:
        """Writes the text; returns its length. Raises OSError that names OUTPUT."""
        with _named():
            self._file.write(shown(text) if self.guards else text)
        return len(text)

    def flush(self) -> None:
        with _named():
            self._file.flush()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._file, name)


@contextlib.contextmanager
def _named() -> Iterator[None]:
    """A context that adds OUTPUT to an OSError and keeps its class, such as BrokenPipeError."""
    try:
        yield
    except OSError as error:
        raise OSError(error.errno, error.strerror, OUTPUT) from error
