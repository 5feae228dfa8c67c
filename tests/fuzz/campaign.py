"""Many cases of many subjects, in worker processes; what ends a worker, or keeps it, is a finding as well."""

import json
import os
import subprocess
import sys
import threading
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, NamedTuple

from .worker import SECONDS

CHUNK = 500  # cases of a worker
READY = 300.0  # seconds in which a worker makes its good file, compiles and reads it
HUNG = 2 * SECONDS  # without a word: its own alarm did not end the case
ROOT = Path(__file__).parents[2]


class Chunk(NamedTuple):
    """Cases of a subject, from first to before last."""

    subject: str
    first: int
    last: int


def findings(
    subjects: Sequence[str], cases: int, seed: int, kept: Path, first: int = 0, workers: int = 0
) -> list[dict[str, Any]]:
    """Do so many cases of each subject, from `first` on; the files of findings are in the folder `kept`.

    workers  processes at once; 0: one a core
    """
    kept.mkdir(parents=True, exist_ok=True)
    chunks = [
        Chunk(name, start, min(start + CHUNK, first + cases))
        for start in range(first, first + cases, CHUNK)
        for name in subjects
    ]
    with ThreadPoolExecutor(workers or os.cpu_count() or 1) as pool:
        return [one for some in pool.map(lambda chunk: _of_chunk(chunk, seed, kept), chunks) for one in some]


def _of_chunk(chunk: Chunk, seed: int, kept: Path) -> list[dict[str, Any]]:
    """Findings; a worker that ends, or hangs, is followed by another from the next case on."""
    found, begin = [], chunk.first
    while begin < chunk.last:
        told, at, why = _worker(chunk._replace(first=begin), seed, kept)
        found += told
        if why is None:
            break
        found.append({"subject": chunk.subject, "seed": seed, "case": at, "kind": why, "error": ""})
        if at is None:
            break
        begin = at + 1
    return found


def _worker(chunk: Chunk, seed: int, kept: Path) -> tuple[list[dict[str, Any]], int | None, str | None]:
    """Findings of a worker; the case that it was at, and what became of it where it did not end well."""
    given = [chunk.subject, str(seed), str(chunk.first), str(chunk.last), str(kept)]
    process = subprocess.Popen(
        [sys.executable, "-m", "tests.fuzz.worker", *given],
        cwd=ROOT,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=os.environ | {"NUMBA_NUM_THREADS": "1", "OMP_NUM_THREADS": "1", "HYBRID_FUZZ": "1"},
    )
    heard, ended, hung = [time.monotonic(), READY], threading.Event(), threading.Event()

    def watch() -> None:
        while not ended.wait(1.0):
            if time.monotonic() - heard[0] > heard[1]:
                hung.set()
                process.kill()
                return

    watching = threading.Thread(target=watch)
    watching.start()
    errors: list[str] = []
    reading = threading.Thread(target=lambda: errors.append(process.stderr.read() if process.stderr else ""))
    reading.start()
    found, at, well = [], None, False
    for line in process.stdout or ():
        heard[:] = [time.monotonic(), HUNG]
        if line.startswith("case "):
            at = int(line.split()[1])
        elif line.startswith("{"):
            found.append(json.loads(line))
        well = line == "done\n"
    code = process.wait()
    ended.set()
    watching.join()
    reading.join()
    if well and not code:
        return found, at, None
    last = errors[0].strip().splitlines()[-1:] if errors else []
    return (
        found,
        at,
        "hangs, and no alarm ends it" if hung.is_set() else f"the process ended, code {code}: {' '.join(last)}",
    )
