"""What a subject of fuzzing is: something that reads files of strangers."""

from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from . import mutations

Change = Callable[[str, bytes, np.random.Generator], bytes]


class Subject(NamedTuple):
    """A reader, and how a good file of it is made.

    make    writes good files into a folder; returns the path that is read
    read    of that path
    files   patterns of the files in the folder, of which one is changed
    change  how: its name, its content, a generator
    named   a refusal must name the file
    share   of the cases of another: less, where one takes long
    """

    make: Callable[[Path], Path]
    read: Callable[[Path], Any]
    files: tuple[str, ...] = ("*",)
    change: Change = mutations.changed
    named: bool = True
    share: float = 1.0
