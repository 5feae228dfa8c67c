"""What a command says on stderr while it works: notes, and how far it has come. Errors are said elsewhere, and always.

Names and words may come from files of strangers: what would control a terminal is shown as \\x1b, say, and not sent.
"""

import contextlib
import sys
from collections.abc import Iterable, Iterator
from typing import Any, TextIO

MINUTE = 60.0
LINE = "{desc}: {percentage:.0f} %, {n_fmt} of {total_fmt}{unit}, {elapsed}{postfix}"  # of a log

CONTROLS = {code: f"\\x{code:02x}" for code in (*range(32), *range(127, 160)) if chr(code) not in "\t\n"}

quiet = False  # True: neither notes nor bars
mute = False  # True: nor what `say` says, as on ranks beside rank 0, which speaks for all, or whoever is it now


def note(text: str) -> None:
    """Tell the user something that he may want to know."""
    if not (quiet or mute):
        print(f"hybrid: {shown(text)}", file=sys.stderr, flush=True)


def say(text: str) -> None:
    """Tell the user what he must know, but errors."""
    if not mute:
        print(f"hybrid: {shown(text)}", file=sys.stderr, flush=True)


def shown(text: str) -> str:
    """The text with its control characters written out, but tabs and ends of lines."""
    return text.translate(CONTROLS)


@contextlib.contextmanager
def guarded() -> Iterator[None]:
    """A context in which what is printed reaches a terminal as `shown`; a file or a pipe gets every byte."""
    if not sys.stdout.isatty():
        yield
        return
    with contextlib.redirect_stdout(Shown(sys.stdout)):
        yield


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
        return tqdm(items, file=sys.stderr, mininterval=0.5, delay=2 * passing, leave=not passing, **common)
    return tqdm(items, file=Lines(sys.stderr), mininterval=MINUTE, bar_format=LINE, **common)


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


class Shown:
    """Takes what is printed, and passes it on as `shown`; all else is the file's."""

    def __init__(self, file: TextIO):
        self._file = file

    def write(self, text: str) -> int:
        """Write the text; returns its length."""
        self._file.write(shown(text))
        return len(text)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._file, name)
