"""Named vectors in files: word2vec's two formats, which gensim and others open, .npz and .npy.

The word2vec formats start with a line "V D", the numbers of words and dimensions. In text, each word is a line "word number ...
number". In binary, each is the word, a blank, D little-endian float32 and a line end. An .npz holds any name.
"""

import io
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import BinaryIO

import numpy as np

from .. import check
from ..storage import files, tables
from ..use.vectors import Vectors

__all__ = ["Vectors", "open_vectors", "save"]

HEAD = 2**20  # maximum bytes of the second line of a word2vec file that identifies its format

Named = tuple[list[str], np.ndarray]

FORMATS = ("text", "binary", "npy", "npz")


def save(path: str | Path, words: Sequence[str], rows: np.ndarray, *, format: str = "text") -> None:
    """Writes a file that `open_vectors`, gensim and others read. It is written atomically; on any error the old file stays.

    words   V strings
    rows    (V, D) floats, written as float32; every format keeps every bit
    format  "text" and "binary": word2vec's; "npy": the rows alone; "npz": arrays `names` and `vectors` for numpy.load

    Raises ValueError for rows that are not (len(words), D) or hold NaN or infinity, and for words that are empty, duplicate or,
    in word2vec's formats, hold white space; OSError for a file that cannot be written.
    """
    check.choice("format", format, FORMATS)
    words, rows = Vectors(words, rows)
    rows = rows.astype("<f4", copy=False)
    _check_names(words)
    for word in words if format in ("text", "binary") else ():
        if word.split() != [word]:
            raise ValueError(f"word {word!r}: expected one without white space; an .npz holds any")
    files.write(path, {"text": _text, "binary": _binary, "npy": _npy, "npz": _npz}[format](words, rows))


def open_vectors(path: str | Path) -> Vectors:
    """Reads a file of `save`, word2vec or gensim; a binary file may lack the line end after each word, as gensim's do.

    The first bytes identify an .npz, and an .npy, whose names are its row numbers. Of word2vec's formats it is the text if the
    second line is a word and numbers. Returns Vectors: `words, rows = open_vectors(path)` gives both.

    Raises OSError for a file that cannot be read. Raises ValueError, for a text with the line number, for a file that is
    truncated or in another format, and for NaN, infinity, and words that are empty, repeated or hold white space.
    """
    files.expect_file(path)
    with open(path, "rb") as file:
        first = file.readline(100)
        read = next((read for begin, read in READERS.items() if first.startswith(begin)), None)
        words, rows = read(path) if read else _read_word2vec(path, file, first)
    with files.named(path):
        _check_names(words)
        return Vectors(words, rows)


def _read_word2vec(path: str | Path, file: BinaryIO, first: bytes) -> Named:
    """Reads either format of word2vec, after its first line."""
    count, width = _header(path, first)
    begin = file.tell()
    size = Path(path).stat().st_size
    binary = not _is_text(file.readline(HEAD), width) and size - begin > 4 * width
    file.seek(begin)
    least = count * (1 + width * (4 if binary else 2))
    if size < least:  # checked before the claimed size is allocated
        raise ValueError(f"{path}: truncated: {size} bytes; expected {least} at least, for {count} x {width}")
    words, rows = [], np.empty((count, width), np.float32)
    for number in range(count):
        try:
            word, rows[number] = (_read_binary if binary else _read_text)(file, width)
            if word.split() != [word]:
                raise ValueError(f"the word is {word!r}, expected one without white space")
        except ValueError as error:
            line = "" if binary else f", line {number + 2}"
            raise ValueError(f"{path}{line}, word {number + 1} of {count}: {error}") from None
        words.append(word)
    if file.read(2).strip():
        raise ValueError(f"{path}: more than the {count} words of its first line")
    return words, rows


def _is_text(line: bytes, width: int) -> bool:
    """True for a word and numbers: two at least unless the width is 1, since one may be a line end among binary numbers."""
    numbers = line.rstrip().split(b" ")[1:]
    try:
        return len([float(number) for number in numbers]) >= min(width, 2)
    except ValueError:
        return False


def _check_names(words: Sequence[str]) -> None:
    if not all(words):
        raise ValueError(f"words[{[*words].index('')}]: found an empty one, expected a name")
    if len(set(words)) < len(words):
        twice, times = Counter(words).most_common(1)[0]
        raise ValueError(f"words: found {twice!r} {times} times, expected different words; remove what repeats")


def _text(words: Sequence[str], rows: np.ndarray) -> Iterator[bytes]:
    yield f"{len(rows)} {rows.shape[1]}\n".encode()
    line = "%s" + " %.9g" * rows.shape[1] + "\n"
    for word, row in zip(words, rows, strict=True):
        yield (line % (word, *row.tolist())).encode()


def _binary(words: Sequence[str], rows: np.ndarray) -> Iterator[bytes]:
    yield f"{len(rows)} {rows.shape[1]}\n".encode()
    for word, row in zip(words, rows, strict=True):
        yield word.encode() + b" " + row.tobytes() + b"\n"


def _header(path: str | Path, line: bytes) -> tuple[int, int]:
    try:
        count, width = (int(field) for field in line.split())
    except ValueError:
        count = width = 0
    if count < 1 or width < 1:
        raise ValueError(f"{path}: the first line is {line[:40]!r}; expected how many words and dimensions")
    return count, width


def _read_text(file: BinaryIO, width: int) -> tuple[str, np.ndarray]:
    line = file.readline()
    word, *numbers = line.rstrip().split(b" ")
    if not line.endswith(b"\n") or len(numbers) != width:
        raise ValueError(f"a line of {len(numbers)} numbers; expected {width} and a line end; is the file truncated?")
    with np.errstate(over="ignore"):  # an overflow becomes infinite, and is rejected as such
        return word.decode(), np.array(numbers, np.float32)


def _read_binary(file: BinaryIO, width: int) -> tuple[str, np.ndarray]:
    word = bytearray()
    while (byte := file.read(1)) not in (b" ", b""):
        if byte != b"\n" or word:  # a line end before the word
            word += byte
    data = file.read(4 * width)
    if len(data) < 4 * width:
        raise ValueError(f"{len(data)} bytes of numbers; expected {4 * width}; is the file truncated?")
    return word.decode(), np.frombuffer(data, "<f4")


def _npy(names: Sequence[str], rows: np.ndarray) -> Iterator[bytes]:
    """Yields the bytes of an .npy with the rows (V, D)."""
    buffer = io.BytesIO()
    np.save(buffer, rows)
    yield buffer.getvalue()


def _npz(names: Sequence[str], rows: np.ndarray) -> Iterator[bytes]:
    """Yields the bytes of an .npz with `names` (V,) and `vectors` (V, D)."""
    buffer = io.BytesIO()
    np.savez(buffer, names=np.array(names), vectors=rows)
    yield buffer.getvalue()


def _read_npz(path: str | Path) -> Named:
    """Reads the arrays `vectors` and `names` of an .npz; ValueError if it is malformed or exceeds memory."""
    arrays = tables.read(path, "names and vectors")
    if not {"names", "vectors"} <= arrays.keys():
        there = ", ".join(map(repr, arrays)) or "nothing"
        raise ValueError(f"{path}: no .npz of vectors (found {there}); expected arrays names and vectors")
    try:
        names = [str(name) for name in np.atleast_1d(arrays["names"]).tolist()]
    except (ValueError, SystemError) as error:  # invalid code points
        raise ValueError(f"{path}: names: {error}; expected words") from None
    return names, arrays["vectors"]


def _read_npy(path: str | Path) -> Named:
    """Reads the rows of an .npy, memory-mapped; their names are their numbers."""
    try:
        rows = np.load(path, mmap_mode="r", allow_pickle=False)
    except Exception as error:  # of NumPy, which parses the header as Python
        raise ValueError(f"{path}: no .npy of vectors ({error}); expected floats (V, D)") from None
    return [str(number) for number in range(len(rows) if rows.ndim else 0)], rows


READERS: dict[bytes, Callable[[str | Path], Named]] = {  # by the first bytes; word2vec's start with a number
    b"PK\3\4": _read_npz,
    b"\x93NUMPY": _read_npy,
}
