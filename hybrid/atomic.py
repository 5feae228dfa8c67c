"""Files that are there whole or not at all."""

import os
from collections.abc import Iterable
from pathlib import Path


def write(path, pieces: Iterable[bytes]) -> None:
    """Write the pieces to `path` by one rename: a reader, or a crash, sees the file before or the whole new one.

    Raises OSError (full disk, unwritable folder); then the file is as it was.
    """
    path = Path(path)
    part = path.with_name(path.name + ".part")
    try:
        with open(part, "wb") as file:
            file.writelines(pieces)
            file.flush()
            os.fsync(file.fileno())
        os.replace(part, path)
    finally:
        part.unlink(missing_ok=True)
    folder = os.open(path.parent, os.O_RDONLY)
    try:
        os.fsync(folder)  # the rename itself
    finally:
        os.close(folder)
