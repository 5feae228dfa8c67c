"""Named vectors in files: word2vec's two formats, which gensim and others open, .npz, tables, Parquet, .npy.

The word2vec formats start with a line "V D", the numbers of words and dimensions. In text, each word is a line "word number ...
number". In binary, each is the word, a blank, D little-endian float32 and a line end. All other formats hold any name.
"""

import csv
import io
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import BinaryIO

import numpy as np

from .. import check
from ..storage import files, tables
from ..use.vectors import Vectors

__all__ = ["Vectors", "load", "open_vectors", "save"]

HEAD = 2**16  # bytes after the first line of a word2vec file that identify its format
NAMES = ("names", "ids", "words")  # possible keys of the names of an .npz; ours are the first

Named = tuple[list[str], np.ndarray]

FORMATS = ("npy", "npz", "tsv", "parquet")  # of `save`, in addition to word2vec's two


def save(
    path: str | Path, words: Sequence[str], rows: np.ndarray, *, binary: bool = False, format: str | None = None
) -> None:
    """Writes a file that `load`, gensim and others read. It is written atomically; on any error the old file stays.

    words   V strings
    rows    (V, D) floats, written as float32; every format keeps every bit
    binary  True: the binary format of word2vec
    format  "npy": the rows alone; "npz": arrays `names` and `vectors` for numpy.load; "tsv": a header, then a line per name;
            "parquet": columns `name` and `vector`, with pyarrow. None: word2vec's

    Raises ValueError for rows that are not (len(words), D) or hold NaN or infinity, and for words that are empty, duplicate or,
    in word2vec's formats, hold white space; OSError for a file that cannot be written.
    """
    if format is not None and format not in FORMATS:
        raise ValueError(f"format: found {format!r}, expected one of {', '.join(FORMATS)}")
    check.no_table("words", words)
    rows = np.asarray(check.unmasked("vectors", rows))
    if rows.ndim != 2 or len(rows) != len(words) or rows.dtype.kind != "f" or not rows.size:
        raise ValueError(f"vectors: found {rows.dtype} {rows.shape}, expected floats ({len(words)}, D), a row a word")
    rows = np.asarray(rows, "<f4")
    _check_finite("vectors", words, rows)
    _check_names(words)
    if format:
        files.write(path, {"npy": _npy, "npz": _npz, "tsv": _tsv, "parquet": _parquet}[format](words, rows))
        return
    for word in words:
        if word.split() != [word]:
            raise ValueError(f"word {word!r}: expected one without white space; .npz, .tsv and .parquet hold any")
    files.write(path, (_binary if binary else _text)(words, rows))


def load(path: str | Path, *, binary: bool = False) -> Vectors:
    """Reads a file of `save`, word2vec or gensim; a binary file may lack the line end after each word, as gensim's do.

    The first bytes identify an .npz, a table, a Parquet file and an .npy, whose names are its row numbers. Returns Vectors:
    `words, rows = load(path)` gives both.

    Raises OSError for a file that cannot be read. Raises ValueError, for a text with the line number, for a file that is
    truncated or in another format, and for NaN, infinity, and words that are empty, repeated or hold white space.
    """
    files.expect_file(path)
    with open(path, "rb") as file:
        first = file.readline(100)
        if read := next((read for begin, read in READERS.items() if first.startswith(begin)), None):
            words, rows = read(path)
            _check_finite(path, words, rows)
            with files.named(path):
                _check_names(words)
            return Vectors(words, rows)
        count, width = _header(path, first)
        size, least = Path(path).stat().st_size, count * (1 + width * (4 if binary else 2))
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
                raise ValueError(f"{path}{line}, word {number + 1} of {count}: {error}; {_other(binary)}") from None
            words.append(word)
        if file.read(2).strip():
            raise ValueError(f"{path}: more than the {count} words of its first line; {_other(binary)}")
    _check_finite(path, words, rows)
    with files.named(path):
        _check_names(words)
    return Vectors(words, rows)


def open_vectors(path: str | Path) -> Vectors:
    """Reads named vectors from a file of any format that `hybrid export` writes, or word2vec's; raises as `load`."""
    return load(path, binary=_is_binary(path))


def _is_binary(path: str | Path) -> bool:
    """True if the first word2vec line is followed by anything but a line of a word and numbers."""
    files.expect_file(path)
    with open(path, "rb") as file:
        fields = file.readline(100).split()
        line = file.readline(HEAD).split()
    try:
        return len([float(number) for number in line[1:]]) != int(fields[1])
    except (ValueError, IndexError):
        return len(fields) == 2 and all(field.isdigit() for field in fields)


def _check_names(words: Sequence[str]) -> None:
    if not all(words):
        raise ValueError(f"words[{[*words].index('')}]: found an empty one, expected a name")
    if len(set(words)) < len(words):
        twice, times = Counter(words).most_common(1)[0]
        raise ValueError(f"words: found {twice!r} {times} times, expected different words; remove what repeats")


def _check_finite(name: str | Path, words: Sequence[str], rows: np.ndarray) -> None:
    finite = np.isfinite(rows).all(axis=1)
    if not finite.all():
        raise ValueError(f"{name}: the vector of {words[finite.argmin()]!r} is not finite; expected float32 numbers")


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


def _other(binary: bool) -> str:
    return f"if this is a {'text' if binary else 'binary'} file, read it with binary={not binary}"


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
    """Reads the arrays `vectors` and `names` (or `ids`) of an .npz; ValueError if it is malformed or exceeds memory."""
    arrays = tables.read(path, "names and vectors")
    called = next((name for name in NAMES if name in arrays), None)
    if called is None or "vectors" not in arrays:
        there = ", ".join(map(repr, arrays)) or "nothing"
        raise ValueError(f"{path}: no .npz of vectors (found {there}); expected arrays names and vectors")
    try:
        names = [str(name) for name in np.atleast_1d(arrays[called]).tolist()]
    except (ValueError, SystemError) as error:  # invalid code points
        raise ValueError(f"{path}: {called}: {error}; expected words") from None
    return _checked(path, names, arrays["vectors"])


def _read_npy(path: str | Path) -> Named:
    """Reads the rows of an .npy, memory-mapped; their names are their numbers."""
    try:
        rows = np.load(path, mmap_mode="r", allow_pickle=False)
    except Exception as error:  # of NumPy, which parses the header as Python
        raise ValueError(f"{path}: no .npy of vectors ({error}); expected floats (V, D)") from None
    return _checked(path, [str(number) for number in range(len(rows) if rows.ndim else 0)], rows)


def _tsv(names: Sequence[str], rows: np.ndarray) -> Iterator[bytes]:
    """Yields the bytes of a table: a header, then a line per name, quoted as CSV if needed; every bit of a number is kept."""
    buffer = io.StringIO()
    writer = csv.writer(buffer, delimiter="\t", lineterminator="\n")
    writer.writerow(["name", *range(1, rows.shape[1] + 1)])
    for name, row in zip(names, rows, strict=True):
        writer.writerow([name, *(f"{number:.9g}" for number in row.tolist())])
        yield buffer.getvalue().encode()
        buffer.seek(0)
        buffer.truncate()


def _read_tsv(path: str | Path) -> Named:
    """Reads the table that `_tsv` writes; ValueError, with the line, for another."""
    names, rows = [], []
    with open(path, encoding="utf-8", newline="") as file:
        lines = csv.reader(file, delimiter="\t", strict=True)
        try:
            width = len(next(lines)) - 1
            for name, *numbers in lines:
                if len(numbers) != width:
                    raise ValueError(f"{len(numbers)} numbers, expected {width}")
                names.append(name)
                rows.append(np.array(numbers, np.float64))
        except (ValueError, csv.Error) as error:
            raise ValueError(f"{path}, line {lines.line_num}: {error}; is it cut short?") from None
    return _checked(path, names, np.array(rows))


def _parquet(names: Sequence[str], rows: np.ndarray) -> Iterator[bytes]:
    """Yields the bytes of a Parquet file with columns `name` and `vector`; ValueError if pyarrow is missing."""
    try:
        import pyarrow
        from pyarrow import parquet
    except ImportError:
        raise ValueError("parquet: needs pyarrow, which is missing; pip install pyarrow, or write .npz") from None
    numbers = pyarrow.FixedSizeListArray.from_arrays(pyarrow.array(rows.reshape(-1)), rows.shape[1])
    buffer = pyarrow.BufferOutputStream()
    parquet.write_table(pyarrow.table({"name": pyarrow.array(list(names)), "vector": numbers}), buffer)
    yield buffer.getvalue().to_pybytes()


def _read_parquet(path: str | Path) -> Named:
    """Reads the columns `name` and `vector` of a Parquet file; ValueError for a malformed one, and if pyarrow is missing."""
    file = tables.open_parquet(path, "table of vectors")
    names: list[str] = []
    rows: list[np.ndarray] = []
    try:
        for batch in tables.parquet_batches(file, ["name", "vector"]):
            names += map(str, tables.parquet_values(batch["name"]))
            rows.append(batch["vector"].flatten().to_numpy(zero_copy_only=False).reshape(len(batch), -1))
            if len(rows) == 1:
                tables.refuse_growth(path, file.metadata.num_rows * rows[0][0].nbytes)
        every = np.concatenate(rows)
    except Exception as error:
        raise ValueError(f"{path}: no Parquet table of vectors ({error}); expected columns name and vector") from None
    return _checked(path, names, every)


def _checked(path: str | Path, names: list[str], rows: np.ndarray) -> Named:
    if rows.ndim != 2 or rows.dtype.kind != "f" or len(rows) != len(names) or not rows.size:
        raise ValueError(f"{path}: found {len(names)} names and {rows.dtype} {rows.shape}, expected V, (V, D) floats")
    with np.errstate(over="ignore"):  # an overflow becomes infinite, and is rejected as such
        return names, np.asarray(rows, np.float32)


READERS: dict[bytes, Callable[[str | Path], Named]] = {  # by the first bytes; word2vec's start with a number
    b"PK\3\4": _read_npz,
    b"\x93NUMPY": _read_npy,
    b"PAR1": _read_parquet,
    b"name\t1": _read_tsv,
}
