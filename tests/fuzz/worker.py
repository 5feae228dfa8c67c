"""Cases in a process that may neither take long nor much memory: python -m tests.fuzz.worker, for campaign.py.

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
from typing import Any, NamedTuple
from unittest import mock

import numpy as np

from hybrid import machine

from .subject import Subject
from .subjects import SUBJECTS

MEMORY = 2**30  # bytes beyond what the process has once a good file was read
SECONDS = 10.0  # of processors, so that a busy machine finds nothing; campaign.py looks at the clock
DOCUMENTED = (ValueError, IndexError, OSError, FloatingPointError)  # those of hybrid/cli/command_line.py, but of memory


class TooLong(BaseException):
    """A case took longer than SECONDS."""


class Good(NamedTuple):
    """A subject with a folder of good files, which it has read."""

    subject: Subject
    folder: Path
    path: Path

    def files(self) -> list[Path]:
        """Those that may be changed."""
        return sorted(file for pattern in self.subject.files for file in self.folder.glob(pattern))


def main(seed: str, kept: str) -> None:
    """Do the chunks that stdin asks for, "subject first last" a line; findings are lines of JSON, and the changed files are in
    the folder `kept`.
    """
    sys.setrecursionlimit(10_000)
    warnings.simplefilter("ignore")
    signal.signal(signal.SIGPROF, _late)
    ready: dict[str, Good] = {}
    with tempfile.TemporaryDirectory() as folder:
        for line in sys.stdin:
            name, first, last = line.split()
            if name not in ready:
                ready[name] = prepared(SUBJECTS[name], Path(folder) / name)
            with bounded():
                _chunk(name, ready[name], int(seed), range(int(first), int(last)), Path(kept))
            print("done", flush=True)


def prepared(subject: Subject, folder: Path) -> Good:
    """A subject whose good files are in this new folder."""
    folder.mkdir()
    with _silent():
        path = subject.make(folder)
        subject.read(path)  # compiles, imports, and must be well
    return Good(subject, folder, path)


def _chunk(name: str, good: Good, seed: int, cases: range, kept: Path) -> None:
    for number in cases:
        print(f"case {number}", flush=True)
        with _changed(good, generator(name, seed, number)) as file:
            found = read(good.subject, good.path, file)
            if found:
                shutil.copy(file, kept / f"{name}-{seed}-{number}{file.suffix}")
                print(json.dumps({"subject": name, "seed": seed, "case": number, **found}), flush=True)


def generator(name: str, seed: int, number: int) -> np.random.Generator:
    """Of one case, whichever others are done."""
    return np.random.default_rng([seed, zlib.crc32(name.encode()), number])


@contextlib.contextmanager
def _changed(good: Good, rng: np.random.Generator) -> Iterator[Path]:
    """One of the files is another while this is open."""
    files = good.files()
    file = files[int(rng.integers(len(files)))]
    content = file.read_bytes()
    file.write_bytes(good.subject.change(file.name, content, rng))
    try:
        yield file
    finally:
        file.write_bytes(content)


def read(subject: Subject, path: Path, file: Path) -> dict[str, Any] | None:
    """What is wrong with how the file was read or refused."""
    signal.setitimer(signal.ITIMER_PROF, SECONDS)
    try:
        with _silent(), contextlib.chdir(path.parent):  # what is written by an odd name is gone with the folder
            subject.read(path)
    except DOCUMENTED as error:
        signal.setitimer(signal.ITIMER_PROF, 0)
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
        signal.setitimer(signal.ITIMER_PROF, 0)
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


@contextlib.contextmanager
def bounded() -> Iterator[None]:
    """Meanwhile this process may take so much memory more."""
    pages = int(Path("/proc/self/statm").read_text().split()[0])
    without = resource.getrlimit(resource.RLIMIT_AS)
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    resource.setrlimit(resource.RLIMIT_AS, (pages * resource.getpagesize() + MEMORY, without[1]))
    try:
        with mock.patch.object(machine, "memory", lambda: MEMORY):  # by which a model is refused before it is made
            yield
    finally:
        resource.setrlimit(resource.RLIMIT_AS, without)


def _late(*_: Any) -> None:
    raise TooLong


if __name__ == "__main__":
    main(*sys.argv[1:])
