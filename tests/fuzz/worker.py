"""Cases of one subject, in a process that may neither take long nor much memory: python -m tests.fuzz.worker, for campaign.py.

Before a case it says so on stdout, so that whoever waits knows which one it was that ended, or stopped, this process.
"""

import contextlib
import json
import os
import resource
import shutil
import signal
import sys
import tempfile
import traceback
import warnings
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from .subject import Subject
from .subjects import SUBJECTS

MEMORY = 2**30  # bytes beyond what the process has once a good file was read
SECONDS = 10.0
DOCUMENTED = (ValueError, IndexError, OSError, FloatingPointError)  # those of hybrid/cli/command_line.py, but of memory


class TooLong(BaseException):
    """A case took longer than SECONDS."""


def main(name: str, seed: str, first: str, last: str, kept: str) -> None:
    """Do cases first to last - 1; findings are lines of JSON, and the changed files are in the folder `kept`."""
    sys.setrecursionlimit(10_000)
    warnings.simplefilter("ignore")
    subject = SUBJECTS[name]
    with tempfile.TemporaryDirectory() as folder:
        good = Path(folder) / "good"
        good.mkdir()
        path = subject.make(good)
        with _silent():
            subject.read(path)  # compiles, imports, and must be well
        _bound()
        for number in range(int(first), int(last)):
            print(f"case {number}", flush=True)
            with _changed(subject, good, generator(name, int(seed), number)) as file:
                found = _read(subject, path, file)
                if found:
                    shutil.copy(file, Path(kept) / f"{name}-{seed}-{number}{file.suffix}")
                    print(json.dumps({"subject": name, "seed": int(seed), "case": number, **found}), flush=True)
    print("done", flush=True)


def generator(name: str, seed: int, number: int) -> np.random.Generator:
    """Of one case, whichever others are done."""
    return np.random.default_rng([seed, zlib.crc32(name.encode()), number])


@contextlib.contextmanager
def _changed(subject: Subject, good: Path, rng: np.random.Generator) -> Iterator[Path]:
    """One of the files is another while this is open."""
    files = sorted(file for pattern in subject.files for file in good.glob(pattern))
    file = files[int(rng.integers(len(files)))]
    content = file.read_bytes()
    file.write_bytes(subject.change(file.name, content, rng))
    try:
        yield file
    finally:
        file.write_bytes(content)


def _read(subject: Subject, path: Path, file: Path) -> dict[str, Any] | None:
    """What is wrong with how the file was read or refused."""
    signal.setitimer(signal.ITIMER_REAL, SECONDS)
    try:
        with _silent():
            subject.read(path)
    except DOCUMENTED as error:
        signal.setitimer(signal.ITIMER_REAL, 0)
        said = f"{error} {getattr(error, 'filename', None) or ''}"
        if subject.named and file.name not in said and path.name not in said:
            return {"kind": "refused without the file's name", "error": _short(error)}
    except MemoryError as error:
        if "expected" in str(error):  # asked before it was taken
            return None
        return {"kind": f"over {MEMORY / 2**30:g} GiB", "error": _short(error)}
    except TooLong as error:
        return {"kind": f"over {SECONDS:g} s", "error": _short(error)}
    except BaseException as error:
        return {"kind": "undocumented", "error": _short(error)}
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
    return None


def _short(error: BaseException) -> str:
    """Its type, its first words, and where it was raised."""
    frames = [frame for frame in traceback.extract_tb(error.__traceback__) if "hybrid" in frame.filename]
    at = f" at {Path(frames[-1].filename).name}:{frames[-1].lineno}" if frames else ""
    return f"{type(error).__name__}: {str(error)[:200]}{at}"


@contextlib.contextmanager
def _silent() -> Iterator[None]:
    """What is printed meanwhile is not seen."""
    with open(os.devnull, "w") as nowhere, contextlib.redirect_stdout(nowhere), contextlib.redirect_stderr(nowhere):
        yield


def _bound() -> None:
    """Limits of this process from here on."""
    pages = int(Path("/proc/self/statm").read_text().split()[0])
    most = pages * resource.getpagesize() + MEMORY
    resource.setrlimit(resource.RLIMIT_AS, (most, most))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    signal.signal(signal.SIGALRM, _late)


def _late(*_: Any) -> None:
    raise TooLong


if __name__ == "__main__":
    main(*sys.argv[1:])
