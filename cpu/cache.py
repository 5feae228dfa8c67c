"""Where compiled kernels are kept: in a folder that only this user can write, since loading one runs the code in it."""

import atexit
import hashlib
import os
import shutil
import tempfile
from pathlib import Path

import numba

OTHERS = 0o022  # may write: the group, everybody


def kernel_cache() -> str:
    """The folder of compiled kernels, made if need be: one for every state of this package's sources.

    Numba asks only whether a kernel's own file has changed, not the files of the functions that it inlines; a folder named
    by all of them keeps an upgrade or a `git pull` from running old arithmetic. Where it cannot be made, or others could
    have written to it, a temporary one takes its place: this process compiles anew.
    """
    home = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    base = Path(numba.config.CACHE_DIR or Path(home) / "hybrid-engine" / "kernels")
    folder = base / _digest()
    try:
        base.mkdir(parents=True, exist_ok=True, mode=0o700)
        if base.stat().st_uid == os.geteuid():
            base.chmod(base.stat().st_mode & ~OTHERS)  # what others have put there is theirs, and not used
        folder.mkdir(exist_ok=True, mode=0o700)
        if _mine(base) and _mine(folder):
            return str(folder)
    except OSError:  # a home that cannot be written
        pass
    temporary = tempfile.mkdtemp(prefix="hybrid-kernels-")
    atexit.register(shutil.rmtree, temporary, ignore_errors=True)
    return temporary


def _mine(folder: Path) -> bool:
    """Whether nobody but this user, or root, can write to the folder."""
    seen = folder.stat()
    return seen.st_uid in (0, os.geteuid()) and not seen.st_mode & OTHERS and os.access(folder, os.W_OK)


def _digest() -> str:
    digest = hashlib.sha256()
    for path in sorted(Path(__file__).parent.glob("*.py")):
        digest.update(path.read_bytes())
    return digest.hexdigest()[:16]
