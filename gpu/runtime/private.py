"""Folders that only this user can write: code from them is run. cpu/ and gpu/ have identical copies of this file."""

import os
import stat
from pathlib import Path


def private(folder: Path, variable: str) -> Path:
    """Returns the real path of the folder, created with its parents if missing; `variable` is for the message.

    New folders are this user's alone, whatever the umask. OSError, with the remedy, if another user could write to the folder
    or a parent, or replace it. Parents with the sticky bit, as /tmp, are accepted. root is trusted.
    """
    folder = Path(os.path.realpath(folder))
    for path in reversed([path for path in (folder, *folder.parents) if not path.exists()]):
        path.mkdir(mode=0o700, exist_ok=True)
    remedy = f"or name another folder in {variable}"
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
    """True if a group belongs to this user alone: it has the user's name and no other member, as is usual on many systems."""
    import grp
    import pwd

    try:
        name, entry = pwd.getpwuid(os.geteuid()).pw_name, grp.getgrgid(group)
    except KeyError:
        return False
    return entry.gr_name == name and not set(entry.gr_mem) - {name}
