"""The commands.

NAME.py has `add(parser)`, which adds the options of `hybrid NAME`, and `run(given)`, which runs it and returns the exit code;
_use.py has those of several. A module is imported when its command is used; the line for `hybrid --help` is in
hybrid/cli/options.py.
"""

import argparse
import importlib
from collections.abc import Callable
from typing import NamedTuple

from ..arguments import Parser

USE = ("eval", "export", "neighbours", "next", "predict")  # in _use.py


class Command(NamedTuple):
    """A command: what adds its options, and what runs it and returns the exit code."""

    add: Callable[[Parser], None]
    run: Callable[[argparse.Namespace], int]


def load(name: str) -> Command:
    """Returns a command."""
    module = importlib.import_module(f"{__name__}.{'_use' if name in USE else name}")
    return module.COMMANDS[name] if name in USE else Command(module.add, module.run)
