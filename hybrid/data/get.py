"""A public data set, brought into a folder: each file whole and checked, or not there."""

import hashlib
import zipfile
from pathlib import Path

from .. import console
from ..storage import atomic, lock
from .catalogue import DATASETS, Dataset, File, Source

SECONDS = 30.0  # without a byte, before a server is given up


def dataset(name: str) -> Dataset:
    """The data set of a name; ValueError for a name that the catalogue lacks."""
    if name not in DATASETS:
        raise ValueError(f"data: found {name!r}, expected one of {', '.join(DATASETS)}")
    return DATASETS[name]


def get(name: str, folder: Path) -> list[Path]:
    """Bring those files of a data set that `folder` lacks, and check all of them; returns their paths.

    Raises OSError where the network or the disk fails; ValueError for a name that the catalogue lacks, for bytes other than
    the catalogue's, and for a file of the user's in the place of one of them.
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
            " name another folder, --out DIR"
        )
    return True


def right(file: File, path: Path) -> bool:
    """Whether what is at `path` has the size and the digest of `file`. Raises OSError."""
    import pooch

    if path.stat().st_size != file.size:
        return False
    kind, _, expected = file.digest.partition(":")
    if kind == "git":  # the SHA-1 of a word, the number of bytes, and the bytes
        content = b"blob %d\0" % file.size + path.read_bytes()
        return hashlib.sha1(content, usedforsecurity=False).hexdigest() == expected
    return bool(pooch.file_hash(str(path)) == expected)


def _bring(source: Source, wanted: list[File], folder: Path) -> None:
    part = _downloaded(source, folder)
    if not source.members:
        _make_room(folder, source.file)
        atomic.settle_file(part)
        atomic.publish(part, folder / source.file.path)
        return
    with zipfile.ZipFile(part) as archive:
        for member in wanted:
            _make_room(folder, member)
            atomic.write(folder / member.path, [archive.read(member.path)])
    part.unlink()


def _downloaded(source: Source, folder: Path) -> Path:
    """What is at an address, in a file of the folder."""
    import pooch

    pooch.get_logger().setLevel("ERROR")
    file = source.file
    part = folder / f".{file.path.replace('/', '-')}.part"
    try:
        with console.bar(file.size, file.path.rpartition("/")[2], "B", scaled=True) as bar:
            downloader = pooch.HTTPDownloader(progressbar=bar, timeout=SECONDS, headers={"Accept-Encoding": "identity"})
            pooch.retrieve(source.address, None, part.name, folder, downloader=downloader)
    except OSError as error:
        if error.filename:  # of the disk
            raise
        raise OSError(
            f"{source.address}: cannot be reached, or was cut off ({error}); {file.path} comes from there: is there a network?"
            " else download it elsewhere and put it into the folder of the data (--out DIR)"
        ) from None
    if not right(file, part):
        part.unlink()
        raise ValueError(
            f"{source.address}: other bytes than expected ({file.digest}); nothing was kept; has the file changed there, or"
            " does the network want a log-in?"
        )
    return part


def _make_room(folder: Path, file: File) -> None:
    (folder / file.path).parent.mkdir(parents=True, exist_ok=True)
