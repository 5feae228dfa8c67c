"""Files of text, line by line."""

from collections.abc import Iterator
from pathlib import Path

LONGEST = 2**26  # bytes of a line: far beyond any example, and no reason to fill the memory with what has no line ends


def numbered(path: str | Path) -> Iterator[tuple[int, str]]:
    """Number and text of every line of a UTF-8 file, without its end.

    Raises OSError for an unreadable file; ValueError, with the line, for bytes that are not UTF-8 and for endless lines.
    """
    with open(path, "rb") as file:
        number = 0
        while line := file.readline(LONGEST):
            number += 1
            if len(line) == LONGEST:
                raise ValueError(f"{path}, line {number}: more than {LONGEST:,} bytes long; expected lines of text")
            try:
                yield number, line.decode("utf-8-sig" if number == 1 else "utf-8").rstrip("\r\n")
            except UnicodeDecodeError as error:
                raise ValueError(
                    f"{path}, line {number}: not UTF-8 ({error.reason}); expected a file of text"
                ) from None
