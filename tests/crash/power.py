"""What a folder may look like after a power cut: of the calls that were recorded, some never came to the disk.

The model is what POSIX promises, which is less than ext4 or XFS do:

* A file's bytes are on the disk once the file was synced. Of later writes each may be lost, be there in part or as a whole,
  whichever came first; what lies before one that is there, and was lost, reads as zeros.
* A name (made, replaced, removed) is there once its folder was synced. Of later changes each may be lost, also where one
  after it was not; but a rename is there as a whole, and none is there without the change before it of the same name. Half of
  the states are those that a journal leaves: the changes of a folder up to one of them.
* Syncing a file does not keep its name, nor syncing a folder what lies below it.
"""

from pathlib import Path
from typing import Any

import numpy as np

from .calls import Call


class File:
    """A file: its bytes on the disk, and the calls since."""

    def __init__(self, content: bytes = b""):
        self.synced, self.later = content, list[Call]()

    def sync(self) -> None:
        """All calls so far are on the disk."""
        self.synced, self.later = self.content(self.later), []

    def content(self, calls: list[Call]) -> bytes:
        """The bytes where of the later calls these have come to the disk."""
        content = bytearray(self.synced)
        for call in calls:
            if call.name == "truncate":
                del content[call.at :]
            content.extend(bytes(max(0, call.at + len(call.data) - len(content))))
            content[call.at : call.at + len(call.data)] = call.data
        return bytes(content)

    def left(self, path: Path, rng: np.random.Generator) -> None:
        """Write what a cut leaves."""
        whole, turn = self.later, rng.integers(3)
        kept = whole if turn == 0 else [] if turn == 1 else [call for call in whole if rng.random() < 0.5]
        if turn == 2 and kept:  # a torn one
            place = int(rng.integers(len(kept)))
            kept[place] = kept[place]._replace(data=kept[place].data[: int(rng.integers(len(kept[place].data) + 1))])
        path.write_bytes(self.content(kept))


class Folder:
    """A folder: its entries on the disk, the changes since, and the entries as processes see them."""

    def __init__(self) -> None:
        self.synced: dict[str, Any] = {}
        self.later: list[dict[str, Any]] = []
        self.seen: dict[str, Any] = {}

    def change(self, names: dict[str, Any]) -> None:
        """Give names to files and folders; take away those of None."""
        self.later.append(names)
        self.seen = _changed(self.seen, names)

    def sync(self) -> None:
        """All changes so far are on the disk."""
        self.synced, self.later = self.seen, []

    def left(self, path: Path, rng: np.random.Generator) -> None:
        """Write what a cut leaves, of all that is in it too."""
        entries, lost = self.synced, set[str]()
        end = rng.integers(len(self.later) + 1)
        journal = rng.random() < 0.5
        for place, names in enumerate(self.later):
            if (place < end if journal else rng.random() < 0.5) and not lost & names.keys():
                entries = _changed(entries, names)
            else:
                lost |= names.keys()
        path.mkdir(exist_ok=True)
        for name in sorted(entries):
            entries[name].left(path / name, rng)


class Disk:
    """A folder as it was before the first call, and then after each."""

    def __init__(self, folder: Path):
        self.root = _read(folder)

    def take(self, call: Call) -> None:
        """A call was made."""
        if call.name in ("write", "truncate"):
            if (file := self.found(call.path)) is not None:  # else: of a file that was removed while it was open
                file.later.append(call)
        elif call.name == "fsync":
            self.found(call.path).sync()
        elif call.name != "open":
            above, _, name = call.path.rpartition("/")
            folder = self.found(above)
            if call.name == "replace":
                assert call.target.rpartition("/")[0] == above, "a rename between folders is not modelled"
                folder.change({name: None, call.target.rpartition("/")[2]: folder.seen[name]})
            else:
                folder.change({name: {"create": File, "mkdir": Folder}.get(call.name, lambda: None)()})

    def found(self, path: str) -> Any:
        """A file or a folder by its path; None where there is none."""
        node: Any = self.root
        for name in filter(None, path.split("/")):
            node = node and node.seen.get(name)
        return node

    def cut(self, path: Path, rng: np.random.Generator) -> None:
        """Make the folder that a power cut leaves now, drawn from all that it may."""
        self.root.left(path, rng)


def _changed(entries: dict[str, Any], names: dict[str, Any]) -> dict[str, Any]:
    return {name: node for name, node in (entries | names).items() if node is not None}


def _read(folder: Path) -> Folder:
    """What is in a folder, all of it on the disk."""
    found = Folder()
    found.seen = {path.name: _read(path) if path.is_dir() else File(path.read_bytes()) for path in folder.iterdir()}
    found.sync()
    return found
