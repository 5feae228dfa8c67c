"""Files of strangers: a good file with bytes changed, cut out or repeated, which a reader reads or refuses by name."""

import tracemalloc
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

MEMORY = 64e6  # bytes that a reader of a small file may take


def mutants(content: bytes, number: int, seed: int = 0) -> Iterator[bytes]:
    """So many changed copies of a file: cut short, a part twice, bytes of others or of digits and separators in their place."""
    rng = np.random.default_rng(seed)
    for turn in range(number):
        changed = bytearray(content)
        first, last = sorted(int(place) for place in rng.integers(0, len(content) + 1, 2))
        if turn % 4 == 0:
            del changed[first:]
        elif turn % 4 == 1:
            changed[first:first] = content[first : min(last, first + 50)]
        else:
            letters = (
                np.frombuffer(b"0123456789:,.- \n\t#e", np.uint8) if turn % 4 == 2 else np.arange(256, dtype=np.uint8)
            )
            for place in rng.integers(0, len(content), 1 + turn % 7):
                changed[place] = rng.choice(letters)
        yield bytes(changed)


def check_reader(read: Callable[[Path], Any], path: Path, number: int = 200) -> int:
    """Every mutant of the file is read, or refused by an error that names the file; returns how many were refused."""
    content, refused = path.read_bytes(), 0
    for mutant in mutants(content, number):
        path.write_bytes(mutant)
        tracemalloc.start()
        try:
            read(path)
        except (ValueError, IndexError, OSError) as error:
            assert type(error) in (ValueError, IndexError, OSError), repr(error)
            assert str(error).startswith(str(path)), repr(error)
            refused += 1
        finally:
            peak = tracemalloc.get_traced_memory()[1]
            tracemalloc.stop()
        assert peak < MEMORY, (peak, mutant[:200])
    path.write_bytes(content)
    return refused
