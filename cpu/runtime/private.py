"""Folders that this user alone can write, since what is loaded from them is run. The same file in cpu/ and in gpu/."""

import os
import stat
from pathlib import Path


def private(folder: Path, variable: str) -> Path:
    """The folder itself, by the path that no link changes; it and those above it are made where they are missing.

    variable  of the environment, that names another folder; for the message

    Whatever the umask is, what is made here is this user's alone. Raises OSError, with the remedy, where another user could
    write to the folder, or exchange it: by the owner and the mode of it and of all above it. Where entries are their owners'
    alone, as in /tmp, a folder of this user's is his. root is trusted. Windows has neither owner nor mode to look at.
    """
    folder = Path(os.path.realpath(folder))
    for path in reversed([path for path in (folder, *folder.parents) if not path.exists()]):
        path.mkdir(mode=0o700, exist_ok=True)
    remedy = f"or name another folder in {variable}"
    if hasattr(os, "geteuid"):
        for path in (folder, *folder.parents):
            _refuse(path, path == folder, remedy)
    if not os.access(folder, os.W_OK):
        raise PermissionError(f"{folder}: found a folder that cannot be written; make it yours, {remedy}")
    return folder


def _refuse(path: Path, last: bool, remedy: str) -> None:
    seen = path.stat()
    if seen.st_uid not in (0, os.geteuid()):
        raise PermissionError(
            f"{path}: found a folder of user {seen.st_uid}, expected yours or root's; remove it, {remedy}"
        )
    others = stat.S_IWOTH if _own_group(seen.st_gid) else stat.S_IWGRP | stat.S_IWOTH
    if seen.st_mode & others and (last or not seen.st_mode & stat.S_ISVTX):
        mend = "remove it, since others may have put code there" if last else f"chmod go-w {path}"
        raise PermissionError(
            f"{path}: found a folder that other users can write, expected yours alone; {mend}, {remedy}"
        )


def _own_group(group: int) -> bool:
    """Whether a group is this user's alone, as many systems make one for everybody: it has his name and no other member."""
    import grp
    import pwd

    try:
        name, entry = pwd.getpwuid(os.geteuid()).pw_name, grp.getgrgid(group)
    except KeyError:
        return False
    return entry.gr_name == name and not set(entry.gr_mem) - {name}
