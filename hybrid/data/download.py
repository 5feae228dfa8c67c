"""A file from an address, which goes on from where an earlier download was cut."""

import http.client
import mimetypes
import re
import urllib.error
import urllib.request
from pathlib import Path
from typing import Any

from .. import __version__, console
from . import digest
from .catalogue import Source

SECONDS = 30.0  # without a byte, before a server is given up


def download(source: Source, part: Path) -> None:
    """Bring what is at an address to the file `part`, from whose end it goes on where it is there already.

    Raises OSError where the server cannot be reached, has no such file, or is cut off; what came stays, for the next time.
    Raises ValueError where other bytes came; nothing of them is kept.
    """
    expected = source.file
    have = part.stat().st_size if part.exists() else 0
    if have > expected.size:
        part.unlink()
        have = 0
    if have < expected.size:
        _receive(source, part, have)
    if not digest.right(expected, part):
        part.unlink()
        raise ValueError(
            f"{source.address}: other bytes than expected ({expected.digest}); nothing was kept; has the file changed there, or"
            " something on the way?"
        )


def _receive(source: Source, part: Path, have: int) -> None:
    expected = source.file
    with _asked(source, have) as answer:
        _check_kind(source, answer)
        first = _first(answer)
        if first not in (0, have):
            raise OSError(f"{source.address}: sent from byte {first}, expected {have}; try again")
        _check_length(source, answer, first)
        label = expected.path.rpartition("/")[2]
        with open(part, "ab") as file, console.bar(expected.size, label, "B", first, scaled=True) as bar:
            file.truncate(first)
            while piece := _piece(source, answer, file.tell()):
                if file.tell() + len(piece) > expected.size:
                    part.unlink()
                    raise ValueError(
                        f"{source.address}: more than the {expected.size:,} bytes expected; nothing was kept; has the file"
                        " changed there, or did something else answer?"
                    )
                file.write(piece)
                bar.update(len(piece))
            received = file.tell()
    if received < expected.size:
        raise _cut(source, received)


def _asked(source: Source, have: int) -> Any:
    """The server's answer to a request for the bytes from `have` on; OSError in the user's words where there is none."""
    headers = {"User-Agent": f"hybrid-engine/{__version__}", "Accept-Encoding": "identity"}
    if have:
        headers["Range"] = f"bytes={have}-"
    request = urllib.request.Request(source.address, headers=headers)
    try:
        return urllib.request.urlopen(request, timeout=SECONDS)
    except urllib.error.HTTPError as error:
        with error:
            raise OSError(
                f"{source.address}: the server says {error.code} {error.reason}; expected {source.file.path} there; try again"
                " later, or put the file into the folder of the data yourself"
            ) from None
    except (OSError, http.client.HTTPException) as error:
        reason = getattr(error, "reason", None) or error
        raise OSError(
            f"{source.address}: cannot be reached ({reason}); {source.file.path} comes from there: is there a network? else"
            " download it elsewhere and put it into the folder of the data (--data DIR)"
        ) from None


def _first(answer: Any) -> int:
    """The place in the file of the first byte of an answer."""
    found = re.match(r"bytes (\d+)-", answer.headers.get("Content-Range", "")) if answer.status == 206 else None
    return int(found[1]) if found else 0


def _check_kind(source: Source, answer: Any) -> None:
    """ValueError for a web page in the place of the file, as a network sends it that wants a log-in first."""
    page = "text/html"
    if answer.headers.get_content_type() == page and mimetypes.guess_type(source.file.path)[0] != page:
        raise ValueError(
            f"{source.address}: a web page ({page}) came, expected {source.file.path}; nothing of it was kept; does the"
            " network want a log-in?"
        )


def _check_length(source: Source, answer: Any, first: int) -> None:
    """ValueError where the server announces a file of another size."""
    told = answer.headers.get("Content-Length", "")
    if told.isdigit() and first + int(told) != source.file.size:
        raise ValueError(
            f"{source.address}: {first + int(told):,} bytes, expected {source.file.size:,}; nothing of it was kept; has the"
            " file changed there, or did something else answer?"
        )


def _piece(source: Source, answer: Any, received: int) -> bytes:
    try:
        piece: bytes = answer.read1(digest.PIECE)
    except (OSError, http.client.HTTPException):
        raise _cut(source, received) from None
    return piece


def _cut(source: Source, received: int) -> OSError:
    return OSError(
        f"{source.address}: the connection was cut after {received:,} of {source.file.size:,} bytes; the same command goes on"
        " from there"
    )
