"""A folder in which the disk fails, or the process dies, at any operation."""

import errno
import os
from pathlib import Path

from hybrid.storage import files
from tests.support.small_runs import Killed


class Disk:
    """A folder whose operation `number` fails; dead: and all after it, as for a process that was killed there."""

    def __init__(self, patch, folder: Path, number: int, dead: bool):
        self.folder, self.left, self.dead, self.failed = str(folder), number, dead, False
        for name in ("mkdir", "replace", "unlink", "rmdir", "ftruncate", "write", "fsync", "open"):
            patch.setattr(os, name, self._guarded(name, getattr(os, name)))
        patch.setattr(files, "open", self._opened, raising=False)

    def _guarded(self, name, real):
        def call(first, *more, **named):
            path = os.readlink(f"/proc/self/fd/{first}") if isinstance(first, int) else os.fspath(first)
            if str(path).startswith(self.folder) and (name != "open" or more[0] & os.O_CREAT):
                self.operate()
            return real(first, *more, **named)

        return call

    def _opened(self, path, mode):
        self.operate()
        return _Watched(open(path, mode), self.operate)

    def operate(self) -> None:
        if self.failed and not self.dead:
            return
        if self.failed or self.left == 0:
            self.failed = True
            raise Killed if self.dead else OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        self.left -= 1


class _Watched:
    """A file that asks before each piece it writes."""

    def __init__(self, file, operate):
        self._file, self._operate = file, operate

    def writelines(self, pieces) -> None:
        for piece in pieces:
            self._operate()
            self._file.write(piece)

    def __getattr__(self, name):
        return getattr(self._file, name)

    def __enter__(self):
        return self

    def __exit__(self, *_) -> None:
        self._file.close()
