"""What a command says on stderr while it works: notes, and how far it has come. Errors are said elsewhere, and always.

On stdout it prints through a stream of this module, whose errors name it.

Names and words may come from files of strangers: what would control a terminal is shown as \\x1b, say, and not sent.
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
LINE = "{desc}: {percentage:.0f} %, {n_fmt} of {total_fmt}{unit}, {elapsed}{postfix}"  # of a log

CONTROLS = {code: f"\\x{code:02x}" for code in (*range(32), *range(127, 160)) if chr(code) not in "\t\n"}
TURNS = {code: f"\\u{code:04x}" for code in (*range(0x2028, 0x202F), *range(0x2066, 0x206A))}  # of lines, directions
OUTPUT = "standard output"

quiet = False  # True: neither notes nor bars
mute = False  # True: nor what `say` says, as on ranks beside rank 0, which speaks for all


def note(text: str) -> None:
    """Tell the user something that he may want to know."""
    if not (quiet or mute):
        tell(text)


def say(text: str) -> None:
    """Tell the user what he must know, but errors."""
    if not mute:
        tell(text)


def tell(text: str) -> None:
    """Write a line to stderr, whatever is quiet or mute."""
    print(f"hybrid: {shown(text)}", file=STDERR, flush=True)


def shown(text: str) -> str:
    """The text with its control characters written out, but tabs and ends of lines."""
    return text.translate(CONTROLS)


def line(text: str) -> str:
    """The text as one line: `shown`, and ends of lines and what turns the direction of writing are written out too."""
    return shown(text).replace("\n", "\\n").translate(TURNS)


def stand_in() -> None:
    """Let what is written to a stream that was closed before the command began (`>&-`) be lost, as to the null device."""
    for name in ("stdout", "stderr"):
        if getattr(sys, name) is None:
            setattr(sys, name, open(os.devnull, "w", encoding="utf-8"))


def drop(stream: TextIO) -> None:
    """Let what a stream still holds be lost: it cannot be written, and would fail again when the process ends."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())


def leave() -> None:
    """At the end of a command: stderr that cannot be written changes no exit code."""
    try:
        sys.stderr.flush()
    except OSError:
        drop(sys.stderr)


@contextlib.contextmanager
def guarded() -> Iterator[None]:
    """A context in which what is printed reaches a terminal as `shown`; a file or a pipe gets every byte.

    An OSError of printing names OUTPUT. What still holds the stream after the end writes to the file itself.
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
    """A tqdm bar on a terminal; where stderr is a file or a pipe, a line a minute and at every postfix.

    items    what to iterate over, if anything
    passing  beside another bar: on a terminal alone, after two seconds, gone at its end
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


PATIENCE = 1.0  # seconds of compiling that nobody is told of


@functools.cache
def note_compiling() -> None:
    """From now on tell the user, once, when kernels are compiled and it takes long; the garbage collector waits for it.

    Compiling makes objects by the million that live until its end; looking through them again takes a twentieth of it.
    """
    from numba.core import event

    event.register("numba:compile", _compiling(event.Listener))


def _compiling(base: type) -> Any:
    class Compiling(base):  # type: ignore[misc]
        """Called when the compilation of a function begins and ends, and of those that it calls within it."""

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
    """What stderr is now. What it does not take is lost, for no work ends because nobody hears of it."""

    def write(self, text: str) -> int:
        """Write the text where that is possible; returns its length."""
        with contextlib.suppress(OSError, ValueError):  # full, a pipe that nobody reads any more; closed
            sys.stderr.write(text)
        return len(text)

    def flush(self) -> None:
        """Pass on what is kept back, where that is possible."""
        with contextlib.suppress(OSError, ValueError):
            sys.stderr.flush()

    def __getattr__(self, name: str) -> Any:
        return getattr(sys.stderr, name)


STDERR: Any = Stderr()


class Lines:
    """Takes what tqdm writes over and over to one line of a terminal, and writes lines."""

    def __init__(self, file: TextIO):
        self._file = file

    def write(self, text: str) -> None:
        """Write the text as a line of its own, if there is any."""
        if shown := text.strip():
            self._file.write(shown + "\n")

    def flush(self) -> None:
        """Pass it on."""
        self._file.flush()


class Output:
    """Takes what is printed, and passes it on; all else is the file's.

    guards  whether it passes it on as `shown`
    """

    def __init__(self, file: TextIO, guards: bool):
        self._file = file
        self.guards = guards

    def write(self, text: str) -> int:
        """Write the text; returns its length. Raises OSError, which names OUTPUT."""
        with _named():
            self._file.write(shown(text) if self.guards else text)
        return len(text)

    def flush(self) -> None:
        """Pass on what is kept back. Raises OSError, which names OUTPUT."""
        with _named():
            self._file.flush()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._file, name)


@contextlib.contextmanager
def _named() -> Iterator[None]:
    """A context whose OSError names OUTPUT; its class, BrokenPipeError say, stays."""
    try:
        yield
    except OSError as error:
        raise OSError(error.errno, error.strerror, OUTPUT) from error
