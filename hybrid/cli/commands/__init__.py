"""The commands, a file each.

NAME.py has `add(parser)`, which offers the options of `hybrid NAME`, and `run(given)`, which does it and returns the exit
code. It is imported when its command is typed; the line that `hybrid --help` says of it stands in hybrid/cli/options.py.
"""

import importlib
from types import ModuleType


def load(name: str) -> ModuleType:
    """The file of a command."""
    return importlib.import_module(f"{__name__}.{name}")
