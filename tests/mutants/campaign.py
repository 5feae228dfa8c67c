"""Mutants meet their tests, one after another; what came of each is kept, and holds until its file or its tests change."""

import ast
import dataclasses
import fcntl
import functools
import hashlib
import json
import os
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path
from typing import Any

from tests.mutants import cuda, python
from tests.mutants.mutant import Mutant
from tests.mutants.selection import Selection
from tests.mutants.tree import Tree

MORE = 15.0  # seconds of processor time that tests may take which only import what a mutant is in
ROOM = 15.0  # seconds of processor time that a test may take beside ten times what it took without a mutant
RECORD = "tests/mutants/results.jsonl"  # what came of a campaign, for who goes on elsewhere
COMPILING = 30.0  # the same where it may wait for a compiler
WATCHED = {
    "CUDASIM": "1",
    "CUDASIM_COUNT": "1",
}  # every access of a kernel: what a missing barrier lets race is seen there


@dataclasses.dataclass(frozen=True)
class Result:
    """What came of a mutant.

    outcome  "killed" or "survived"
    how      "failed", "hung" (a test took too long), "died" (a signal ended the process), or "passed"
    by       the test that killed it
    tests    the test files that it survived
    state    a hash of its file, and of the test that killed it or of all that it survived
    """

    name: str
    outcome: str
    how: str
    by: str | None
    tests: list[str]
    seconds: float
    state: str


class Campaign:
    """Runs mutants of the sources in `root`; everything that it writes lies in `folder`."""

    def __init__(self, root: Path, folder: Path, more: float = MORE):
        folder = folder.resolve()  # tests write to it from the copy
        self.root, self.folder, self.more = root, folder, more
        folder.mkdir(parents=True, exist_ok=True)
        self._lock = open(folder / "lock", "w")
        try:
            fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            self._lock.close()
            raise BlockingIOError(f"{folder}: another campaign is running there; --folder names another") from None
        self.tree = Tree(root, folder)
        self.selection = Selection(self.tree.root)
        self.results: dict[str, Result] = {}
        self._seconds: dict[str, float] = {}  # that each test took
        self._good: dict[str, str] = {}  # tests that passed without a mutant, and the state that they did so in
        self._read()
        self._server: subprocess.Popen[str] | None = None

    def mutants(self, paths: list[str]) -> list[Mutant]:
        """All mutants of these files and of those in these folders."""
        found: list[Mutant] = []
        for path in paths:
            start = self.tree.root / path
            if not start.exists():
                raise ValueError(f"{path}: expected a file or a folder of {self.root}")
            for file in [start] if start.is_file() else sorted(start.rglob("*")):
                language = {".py": python, ".cu": cuda, ".cuh": cuda}.get(file.suffix)
                if language:
                    found += language.mutants(file.relative_to(self.tree.root).as_posix(), file.read_text())
        return found

    def held(self, mutant: Mutant) -> Result | None:
        """What came of a mutant before, if neither its file nor the tests that it met have changed since."""
        result = self.results.get(mutant.name)
        if result is None or result.state != self._state(mutant.path, result.tests, result.by):
            return None
        if result.outcome == "survived" and not set(self.selection.own(mutant.path)) <= set(result.tests):
            return None
        return result

    def run(self, mutant: Mutant) -> Result:
        """Let the mutant meet its tests, and keep what came of it."""
        begun, met, more = time.monotonic(), [], self.more
        outcome, how, by = "survived", "passed", None
        own = self.selection.own(mutant.path)
        meetings = [(test, False) for test in own]
        if mutant.area == "gpu .cu":  # a race may leave every number as it is
            meetings += [(test, True) for test in own]
        meetings += [(test, False) for test in self.selection.others(mutant.path)]
        for test, watched in meetings:
            if test not in own and more <= 0:
                break
            answer = self._meet(mutant, test, None if test in own else more, watched)
            met.append(test)
            if test not in own:
                more -= answer["seconds"]
            if answer["outcome"] != "passed":
                outcome, how, by = "killed", answer["outcome"], answer["by"]
                break
        survived = met if outcome == "survived" else []
        state = self._state(mutant.path, survived, by)
        result = Result(mutant.name, outcome, how, by, survived, round(time.monotonic() - begun, 1), state)
        self._keep("results.jsonl", dataclasses.asdict(result))
        self.results[mutant.name] = result
        return result

    def record(self) -> None:
        """Write what is known and still holds to RECORD, in the sources: campaigns elsewhere begin with it."""
        paths = {name.partition(" | ")[0] for name in self.results}
        there = self.mutants(sorted(path for path in paths if (self.tree.root / path).exists()))
        held = [result for mutant in there if (result := self.held(mutant))]
        lines = [json.dumps(dataclasses.asdict(result)) for result in sorted(held, key=lambda result: result.name)]
        (self.root / RECORD).write_text("".join(f"{line}\n" for line in lines))

    def _meet(self, mutant: Mutant, test: str, spend: float | None, watch: bool) -> dict[str, Any]:
        """What came of the tests of a file, of a kernel where every access is watched. A test that fails without the mutant
        too does not count.
        """
        text = (self.tree.root / mutant.path).read_text()
        room = COMPILING if mutant.path.startswith("cpu/") or mutant.area == "gpu .cu" else ROOM
        watched = WATCHED if watch or mutant.kind == "barrier dropped" else {}
        but: list[str] = []
        if room == COMPILING:
            self._compile(test)
        while True:
            with self.tree.planted(mutant.path, mutant.plant(text)) as environ:
                answer = self._ask(test, but=but, spend=spend, otherwise=room, environ=environ | watched)
            by, guessed = answer["by"], answer["by"] not in self._seconds  # the room of a test that nobody has seen yet
            if answer["outcome"] == "passed":
                return answer
            if not self._passes(test, by, watched):
                but.append(by)
            elif not (answer["outcome"] == "hung" and guessed and by in self._seconds):
                return answer

    def _compile(self, path: str) -> None:
        """Run the tests of a file without a mutant, once: what they compile serves all mutants that leave it as it is."""
        key, state = f"{path} compiled", self._sources()
        if self._good.get(key) != state:
            answer = self._ask(path, otherwise=10 * COMPILING, environ=self.tree.unchanged())
            self._good[key] = state
            self._keep("tests.jsonl", {"test": key, "seconds": answer["seconds"], "state": state})

    def _passes(self, path: str, test: str | None, environ: dict[str, str]) -> bool:
        """Whether a test passes without a mutant; None: whether the file can be read."""
        key, state = test or path, self._state(path, [], sources=True) + "".join(environ)
        if self._good.get(key) != state:
            only = [test] if test else []
            answer = self._ask(path, only=only, otherwise=10 * COMPILING, environ=self.tree.unchanged() | environ)
            if answer["outcome"] != "passed":
                if not test:
                    raise RuntimeError(f"{path} cannot be read without a mutant either:\n{answer['told']}")
                return False
            self._good[key] = state
            self._keep("tests.jsonl", {"test": key, "seconds": answer["tests"].get(key, [True, 0])[1], "state": state})
        return True

    def _ask(self, path: str, **run: Any) -> dict[str, Any]:
        """Run tests of a file: those that have killed most first, then those that take the least time."""
        kills = Counter(result.by for result in self.results.values())
        known = {name: seconds for name, seconds in self._seconds.items() if name.startswith(f"{path}::")}
        order = sorted(known, key=lambda name: (-kills[name], known[name]))
        run = {"but": [], "only": None, "spend": None} | run
        run["rank"] = {name: rank for rank, name in enumerate(order)}
        run["room"] = {name: run["otherwise"] + 10 * seconds for name, seconds in known.items()}
        answer = self._answer(run | {"paths": [path]})
        for name, (passed, seconds) in answer["tests"].items():
            if passed and name not in self._seconds:
                self._seconds[name] = seconds
                self._keep("tests.jsonl", {"test": name, "seconds": seconds, "state": ""})
        return answer

    def _answer(self, run: dict[str, Any]) -> dict[str, Any]:
        if self._server is None:
            threads = {
                "NUMBA_NUM_THREADS": "4",
                "MPLBACKEND": "Agg",
            }  # as tests/conftest.py asks, before Numba is imported
            environ = (
                os.environ | threads | {"PYTHONPATH": str(self.tree.root), "CI": "1"}
            )  # hypothesis repeats its examples
            program = [sys.executable, "-P", str(Path(__file__).with_name("server.py"))]
            pipes: dict[str, Any] = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
            self._server = subprocess.Popen(program, cwd=self.tree.root, env=environ, **pipes)
        assert self._server.stdin and self._server.stdout
        print(json.dumps(run), file=self._server.stdin, flush=True)
        answer: dict[str, Any] = json.loads(self._server.stdout.readline())
        return answer

    def _state(self, path: str, tests: list[str], by: str | None = None, sources: bool = False) -> str:
        digest = hashlib.sha256()
        for name in (path, *tests) if by is None else (path,):
            digest.update((self.tree.root / name).read_bytes() if (self.tree.root / name).exists() else b"")
        digest.update(self._test(by).encode())
        return digest.hexdigest()[:16] + (self._sources() if sources else "")

    @functools.cache  # noqa: B019  one campaign lives as long as the process
    def _test(self, name: str | None) -> str:
        """The source of a test, by its name: more tests in its file are no reason to run a mutant again that it killed."""
        path, _, of = (name or "").partition("::")
        if not (self.tree.root / path).is_file():
            return ""
        text = (self.tree.root / path).read_text()
        last = of.partition("[")[0].rpartition("::")[2]
        found = (node for node in ast.walk(ast.parse(text)) if getattr(node, "name", None) == last)
        return next((ast.get_source_segment(text, node) or "" for node in found), "")

    def _sources(self) -> str:
        """A hash of everything that mutants are planted in, as it is without one."""
        if not hasattr(self, "_sources_state"):
            digest = hashlib.sha256()
            for path in sorted(self.root.glob("*/**/*")):
                if path.suffix in (".py", ".cu", ".cuh") and path.relative_to(self.root).parts[0] in (
                    "hybrid",
                    "cpu",
                    "gpu",
                ):
                    digest.update(path.read_bytes())
            self._sources_state = digest.hexdigest()[:16]
        return self._sources_state

    def _keep(self, name: str, record: dict[str, Any]) -> None:
        with open(self.folder / name, "a") as file:
            print(json.dumps(record), file=file, flush=True)

    def _read(self) -> None:
        for path in (self.root / RECORD, self.folder / "results.jsonl"):
            for record in _records(path):
                self.results[record["name"]] = Result(**record)
        for record in _records(self.folder / "tests.jsonl"):
            self._seconds[record["test"]] = record["seconds"]
            self._good[record["test"]] = record["state"] or self._good.get(record["test"], "")

    def close(self) -> None:
        """End the process that forks, and let others in."""
        self._lock.close()
        if self._server is not None:
            assert self._server.stdin and self._server.stdout
            self._server.stdin.close()
            self._server.wait()
            self._server.stdout.close()


def _records(path: Path) -> list[dict[str, Any]]:
    """The records of a file; what was cut off at its end is left out."""
    records = []
    for line in path.read_text().splitlines() if path.exists() else ():
        try:
            records.append(json.loads(line))
        except json.JSONDecodeError:
            continue
    return records
