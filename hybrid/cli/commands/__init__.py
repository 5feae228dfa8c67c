"""The commands, one file each.

NAME.py has `add(parser)`, which adds the options of `hybrid NAME`, and `run(given)`, which runs it and returns the exit code.
It is imported when its command is used; the line for `hybrid --help` is in hybrid/cli/options.py.
"""

import importlib
from types import ModuleType


def load(name: str) -> ModuleType:
    """Returns the module of a command."""
    return importlib.import_module(f"{__name__}.{name}")
