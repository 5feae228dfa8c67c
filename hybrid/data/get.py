"""A public data set, brought into a folder: each file whole and checked, or not there."""

import zipfile
from pathlib import Path

from ..storage import atomic, lock
from .catalogue import DATASETS, Dataset, File, Source
from .digest import matches, right
from .download import download

PART = ".part"


def dataset(name: str) -> Dataset:
    """The data set of a name; ValueError for a name that the catalogue lacks."""
    if name not in DATASETS:
        raise ValueError(f"data: found {name!r}, expected one of {', '.join(DATASETS)}")
    return DATASETS[name]


def get(name: str, folder: Path) -> list[Path]:
    """Bring those files of a data set that `folder` lacks, and check all of them; returns their paths.

    A download that was cut goes on from there. Raises OSError where the network or the disk fails; ValueError for a name
    that the catalogue lacks, for bytes other than the catalogue's, and for a file of the user's in the place of one of them.
    """
    wanted = dataset(name)
    folder.mkdir(parents=True, exist_ok=True)
    with lock.turn(folder):  # of two processes the second waits, and finds the files there
        for source in wanted.sources:
            missing = [file for file in source.members or (source.file,) if not _there(file, folder / file.path)]
            if missing:
                _bring(source, missing, folder)
    return [folder / file.path for file in wanted.files]


def missing(name: str, folder: Path) -> list[str]:
    """The files of a data set that are not in `folder`, by path."""
    return [file.path for file in dataset(name).files if not (folder / file.path).exists()]


def _there(file: File, path: Path) -> bool:
    """Whether the file is there; ValueError where another one has its place."""
    if not path.exists():
        return False
    if not right(file, path):
        raise ValueError(
            f"{path}: not the public file (expected {file.size:,} bytes, {file.digest}); it is left as it is: move it away, or"
            " name another folder, --data DIR"
        )
    return True


def _bring(source: Source, wanted: list[File], folder: Path) -> None:
    part = folder / f".{source.file.path.replace('/', '-')}{PART}"
    download(source, part)
    if not source.members:
        _make_room(folder, source.file)
        atomic.settle_file(part)
        atomic.publish(part, folder / source.file.path)
        return
    with zipfile.ZipFile(part) as archive:
        for member in wanted:
            _make_room(folder, member)
            atomic.write(folder / member.path, [_member(archive, member, source)])
    part.unlink()


def _member(archive: zipfile.ZipFile, member: File, source: Source) -> bytes:
    with archive.open(member.path) as file:
        content = file.read(member.size + 1)
    if len(content) != member.size or not matches(member, [content]):
        raise ValueError(f"{source.address}: {member.path} in it has other bytes than expected ({member.digest})")
    return content


def _make_room(folder: Path, file: File) -> None:
    (folder / file.path).parent.mkdir(parents=True, exist_ok=True)
