"""Many cases of many subjects, in worker processes; what ends a worker, or keeps it, is a finding as well."""

import contextlib
import json
import os
import queue
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, NamedTuple

from .subjects import SUBJECTS
from .worker import SECONDS

CHUNK = 500  # cases that a worker is asked for at once
READY = 300.0  # seconds in which a worker makes its good file, compiles and reads it
HUNG = 6 * SECONDS  # by the clock: its own alarm did not end the case
MODULE = "tests.fuzz.worker"
FOUND = "findings.jsonl"
ROOT = Path(__file__).parents[2]

Finding = dict[str, Any]


class Chunk(NamedTuple):
    """Cases of a subject, from first to before last."""

    subject: str
    first: int
    last: int


def findings(
    subjects: Sequence[str], cases: int, seed: int, kept: Path, first: int = 0, workers: int = 0
) -> list[Finding]:
    """Do so many cases of each subject (of slow ones a share), from `first` on; `kept` is a folder for their files, and FOUND.

    workers  processes at once; 0: one a core
    """
    kept.mkdir(parents=True, exist_ok=True)
    waiting: queue.SimpleQueue[Chunk] = queue.SimpleQueue()
    for start in range(0, cases, CHUNK):
        for name in subjects:
            last = min(start + CHUNK, number_of(name, cases))
            if start < last:
                waiting.put(Chunk(name, first + start, first + last))
    workers = workers or os.cpu_count() or 1
    with ThreadPoolExecutor(workers) as pool:
        of_each = pool.map(lambda _: list(_worked(waiting, seed, kept)), range(workers))
        return sorted((one for some in of_each for one in some), key=lambda one: (one["subject"], one["case"]))


def number_of(subject: str, cases: int) -> int:
    """How many cases of a subject are done, where so many are of others."""
    return max(1, int(cases * SUBJECTS[subject].share))


def _worked(waiting: "queue.SimpleQueue[Chunk]", seed: int, kept: Path) -> Iterator[Finding]:
    """What a worker finds in the chunks that it takes; one that ends, or hangs, is followed by another."""
    worker = Worker(seed, kept)
    try:
        while not waiting.empty():
            try:
                chunk = waiting.get_nowait()
            except queue.Empty:  # another took it
                return
            while chunk.first < chunk.last:
                found = worker.do(chunk)
                case = chunk.first if worker.case is None else worker.case
                if worker.ended:
                    found.append(
                        {"subject": chunk.subject, "seed": seed, "case": case, "kind": worker.ended, "error": ""}
                    )
                with open(kept / FOUND, "a") as file:  # now, since a campaign may take hours
                    file.writelines(f"{json.dumps(one)}\n" for one in found)
                yield from found
                if worker.ended is None:
                    break
                chunk = chunk._replace(first=case + 1)
                worker = Worker(seed, kept)
    finally:
        worker.close()


class Worker:
    """A process of worker.py.

    case   that it is at; None: at none yet
    ended  how it ended while it did a chunk; None: it is there
    """

    def __init__(self, seed: int, kept: Path):
        self.case: int | None = None
        self.ended: str | None = None
        self._process = subprocess.Popen(
            [sys.executable, "-m", MODULE, str(seed), str(kept)],
            cwd=ROOT,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env=os.environ | {"NUMBA_NUM_THREADS": "2", "OMP_NUM_THREADS": "2"},
        )
        self._errors: list[str] = []
        self._heard, self._limit, self._hung = time.monotonic(), READY, False
        self._closing = threading.Event()
        self._threads = [threading.Thread(target=act) for act in (self._watch, self._listen)]
        for thread in self._threads:
            thread.start()

    def do(self, chunk: Chunk) -> list[Finding]:
        """What it finds in a chunk."""
        assert self._process.stdin and self._process.stdout
        self.case, found = None, []
        self._hear(READY)
        try:
            print(*chunk, file=self._process.stdin, flush=True)
            for line in self._process.stdout:
                if line == "done\n":
                    self._hear(READY)
                    return found
                if line.startswith("case "):
                    self.case = int(line.split()[1])
                    self._hear(HUNG)
                elif line.startswith("{"):
                    found.append(json.loads(line))
        except BrokenPipeError:
            pass
        self.close()
        last = " ".join("".join(self._errors).strip().splitlines()[-1:])
        code = self._process.returncode
        self.ended = "hangs, and no alarm ends it" if self._hung else f"the process ended, code {code}: {last}"
        return found

    def close(self) -> None:
        """End it."""
        self._closing.set()
        self._process.kill()
        self._process.wait()
        for thread in self._threads:
            thread.join()
        with contextlib.suppress(BrokenPipeError), self._process:  # closes its streams
            pass

    def _hear(self, limit: float) -> None:
        self._heard, self._limit = time.monotonic(), limit

    def _watch(self) -> None:
        while not self._closing.wait(0.5):
            if time.monotonic() - self._heard > self._limit:
                self._hung = True
                self._process.kill()
                return

    def _listen(self) -> None:
        assert self._process.stderr
        for line in self._process.stderr:
            self._errors[:] = [*self._errors[-20:], line]
