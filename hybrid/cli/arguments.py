"""How a command line is read: whole words only, numbers within bounds. Imports nothing heavy."""

import argparse
import math
from collections.abc import Callable

MOST = 10**9  # of anything that is counted: beyond it sizes overflow before memory does
QUIET = "neither notes nor a progress bar on stderr; errors stay"


class Parser(argparse.ArgumentParser):
    """Takes no abbreviations: one that is clear today is another option's tomorrow."""

    def __init__(self, *arguments, **settings):
        super().__init__(*arguments, **{"allow_abbrev": False} | settings)

    def add_quiet(self, default=argparse.SUPPRESS) -> None:
        """Offer --quiet; before the command and after it, so what is said last must not undo what was said first."""
        self.add_argument("--quiet", action="store_true", default=default, help=QUIET)

    def add_defaults(self, default_of: Callable[[str], str]) -> None:
        """Say the default of every option that has one, by name, at the end of its help."""
        for action in self._actions:
            if shown := default_of(action.dest):
                action.help = f"{action.help} (default: {shown})"


def positive(text: str) -> int:
    """A whole number of at least 1."""
    return _whole(text, 1)


def whole(text: str) -> int:
    """A whole number of at least 0."""
    return _whole(text, 0)


def rate(text: str) -> float:
    """A finite number of at least 0."""
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not 0 <= value < math.inf:
        raise argparse.ArgumentTypeError(f"found {text!r}, expected a number of at least 0")
    return value


def _whole(text: str, low: int) -> int:
    value = int(text) if text.isascii() and text.isdigit() else -1
    if not low <= value <= MOST:
        raise argparse.ArgumentTypeError(f"found {text!r}, expected a whole number from {low} to {MOST:,}")
    return value
