"""Whether bytes are the ones that were written down."""

import hashlib
from collections.abc import Iterable
from pathlib import Path

from .catalogue import File

PIECE = 2**20


def right(file: File, path: Path) -> bool:
    """Whether what is at `path` has the size and the digest of `file`. Raises OSError."""
    if path.stat().st_size != file.size:
        return False
    with open(path, "rb") as opened:
        return matches(file, iter(lambda: opened.read(PIECE), b""))


def matches(file: File, pieces: Iterable[bytes]) -> bool:
    """Whether bytes, piece by piece, have the digest of `file`."""
    kind, _, expected = file.digest.partition(":")
    if kind == "git":  # the SHA-1 of a word, the number of bytes, and the bytes
        digest = hashlib.sha1(b"blob %d\0" % file.size, usedforsecurity=False)
    else:
        digest = hashlib.sha256()
    for piece in pieces:
        digest.update(piece)
    return digest.hexdigest() == expected
