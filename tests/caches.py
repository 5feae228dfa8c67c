"""Where tests keep what is compiled."""

import os
import tempfile
from pathlib import Path

from gpu.runtime.private import private


def kept(folder: Path, variable: str) -> str:
    """The folder, or one of this user's below the temporary ones where others could write to it.

    So it is for the root of a container who works in folders of another user: such are refused, and each test compiled anew.
    """
    try:
        return str(private(folder, variable))
    except OSError:
        return str(private(Path(tempfile.gettempdir(), f"hybrid-tests-{os.geteuid()}", variable.lower()), variable))
