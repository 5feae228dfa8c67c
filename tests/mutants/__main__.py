"""python -m tests.mutants --number 500 --seed 7: plants small faults in copies of the sources, tells the share that tests find.

Each mutant meets the tests of its file (of its package those that import it, others that name its path), then those that
import it elsewhere, the nearest first: what `make test` runs, then what `make test-all` runs besides. It is killed where a
test fails, hangs or dies that passes without it. tests/mutants/equivalent.txt may name mutants that no test should see, each
with its reason.
"""

import argparse
import contextlib
import dataclasses
import functools
import importlib.util
import os
import queue
import re
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from tests import tiers
from tests.mutants.plant import Mutant, drawn, mutants
from tests.support.imports import ROOT, graph, modules

# What `make test` runs, and `make test-all` besides
TIERS = {"test": "not slow and not later", "all": "later and not slow"}
APART = tuple(f"tests/{name}/" for name in ("docs", *tiers.APART))
FOUND_BY_NAME = {name: name for name in ("hybrid.cli.commands", "hybrid.readout", "hybrid.trunk")}
FOUND_BY_NAME |= {"hybrid.models": "hybrid.train.runs"}
FOUND_BY_NAME |= dict.fromkeys(("cpu", "gpu"), "hybrid.backend")
LEFT_OUT = ".git .venv build dist *cache __pycache__ .hypothesis *.egg-info".split()
BUDGET = 150.0  # seconds of a mutant's own tests, after which none begins; half of it for those of others
MORE = 10  # test files beside a mutant's own
EQUIVALENT = Path(__file__).with_name("equivalent.txt")


@dataclasses.dataclass(frozen=True)
class Result:
    """What came of a mutant: killed in a tier, "test" or "all", by a test; or survived the tiers up to this one."""

    killed: bool
    tier: str
    by: str
    seconds: float


class Selection:
    """The test files that belong to a source file, and those that import it."""

    def __init__(self, root: Path):
        self.root, self.importers = root, dict[str, set[str]]()
        packages = [path.parent.name for path in sorted(root.glob("*/__init__.py"))]
        for name, targets in graph(*packages, within_functions=True, root=root).items():
            for target in targets:
                self.importers.setdefault(target, set()).add(name)
        for name in (name for package in packages for name in modules(package, root)):  # what a registry finds by name
            if name.rpartition(".")[0] in FOUND_BY_NAME:
                self.importers.setdefault(name, set()).add(FOUND_BY_NAME[name.rpartition(".")[0]])

    def own(self, path: str) -> list[str]:
        """Its namesakes, those of its package that import it or the package that offers it, and all that name the path.

        Of a header those of the kernels that include it.
        """
        place = Path(path).parent if Path(path).name == "__init__.py" else Path(path)
        name = place.with_suffix("").as_posix().replace("/", ".")
        folders = Path("tests", path).parent.parts
        folder = "/".join(folders[: 3 if path.startswith("hybrid/") else 2])
        importers = self.importers.get(name, set())
        if len(folders) > 2:  # one level down: the names of hybrid itself are imported by tests of everything
            importers = importers | self.importers.get(name.rpartition(".")[0], set())
        found = {f"{name.replace('.', '/')}.py" for name in importers if name.rpartition(".")[2].startswith("test_")}
        found = {test for test in found if test.startswith(f"{folder}/")} | self._holding(path, "tests/**/test_*.py")
        for including in self._including(path):
            found |= set(self.own(including))
        name = f"test_{Path(path).stem}.py"
        found |= {test.relative_to(self.root).as_posix() for test in self.root.glob(f"tests/**/{name}")}
        found = {test for test in found if not test.startswith(APART)}
        return sorted(found, key=lambda test: (Path(test).name != name, not test.startswith(folder), test))

    def others(self, path: str) -> list[str]:
        """Of those that import it, directly or not, the nearest: those of its package first."""
        edge = [Path(one).with_suffix("").as_posix().replace("/", ".") for one in (path, *self._including(path))]
        edge = [name.removesuffix(".__init__") for name in edge]
        seen, found = set(edge), list[str]()
        while edge:
            edge = sorted({more for name in edge for more in self.importers.get(name, ())} - seen)
            seen |= set(edge)
            tests = [f"{name.replace('.', '/')}.py" for name in edge if name.rpartition(".")[2].startswith("test_")]
            found += sorted(tests, key=lambda test: -len(os.path.commonpath([test, f"tests/{path}"])))
        return [test for test in found if not test.startswith(APART) and test not in self.own(path)][:MORE]

    def _including(self, path: str) -> list[str]:
        if not path.endswith(".cuh"):
            return []
        name = Path(path).name
        files = self._holding(f'#include "{name}"', "gpu/**/*.cu*") | self._holding(f'/{name}"', "gpu/**/*.cu*")
        return sorted(files | {kernel for file in files for kernel in self._including(file)})

    def _holding(self, text: str, files: str) -> set[str]:
        whole = re.compile(re.escape(text) + r"(?!\w)")
        return {file.relative_to(self.root).as_posix() for file in self.root.glob(files) if whole.search(_text(file))}


@functools.cache
def _text(file: Path) -> str:
    return file.read_text()


class Worker:
    """A copy of the sources, in which one mutant after another is planted, and what was compiled of it."""

    def __init__(self, folder: Path, selection: Selection, given: argparse.Namespace):
        self.folder, self.root, self.selection, self.given = folder, folder / "tree", selection, given
        shutil.rmtree(self.root, ignore_errors=True)
        # Files keep their times: what is compiled holds.
        shutil.copytree(ROOT, self.root, ignore=shutil.ignore_patterns(*LEFT_OUT), symlinks=True)
        for name in ("kernels", "cache"):
            (folder / name).mkdir(mode=0o700, exist_ok=True)
        self.good, self.bad = set[str](), set[str]()  # tests that pass, and fail, without a mutant

    def result(self, mutant: Mutant) -> Result:
        """Let a mutant meet its tests."""
        begun, tier, by = time.monotonic(), "", ""
        own, others = self.selection.own(mutant.path), self.selection.others(mutant.path)
        for tier in TIERS:
            for files, budget in ((own, BUDGET), (others, BUDGET / (2 if own else 1))):
                by = by or (self._killer(mutant, files, TIERS[tier], budget) if files else "")
            if by:
                break
        return Result(bool(by), tier, by, round(time.monotonic() - begun, 1))

    def _killer(self, mutant: Mutant, files: list[str], marker: str, budget: float) -> str:
        """The test that kills it, or the files that cannot be read with it; empty where all pass."""
        file, watched = self.root / mutant.path, "CUDASIM" if mutant.new == "" and "sync" in mutant.old else ""
        text, times = file.read_text(), (file.stat().st_atime_ns, file.stat().st_mtime_ns)
        while True:
            unchanged = self._digest()
            file.write_text(mutant.plant(text))
            try:
                passed, by = self._run(["-m", marker, *files], budget, mutant, unchanged, watched)
            finally:
                file.write_text(text)
                os.utime(file, ns=times)
            if passed or (by or " ".join(files)) in self.good:
                return "" if passed else by or files[0]
            again, _ = self._run([by] if by else ["--collect-only", *files], budget, None, "", watched)
            (self.good if again else self.bad).add(by or " ".join(files))
            if not again and not by:
                raise RuntimeError(f"{files} cannot be read without a mutant either")

    def _run(
        self, words: list[str], budget: float, mutant: Mutant | None, unchanged: str, watched: str
    ) -> tuple[bool, str]:
        """Whether tests pass, and the last that had begun."""
        with tempfile.TemporaryDirectory(dir=self.folder, ignore_cleanup_errors=True) as scratch:
            log = Path(scratch, "log")
            log.touch()
            environ = os.environ | self._caches(mutant, unchanged, Path(scratch))
            environ |= {"HOME": scratch, "TMPDIR": scratch, "HYBRID_DATA": f"{scratch}/data"}
            environ |= {"PYTHONPATH": str(self.root), "MUTANT_LOG": str(log)}
            environ |= {"MUTANT_LIMIT": str(self.given.limit), "MUTANT_BUDGET": str(budget)}
            environ |= dict.fromkeys([watched, f"{watched}_COUNT"] if watched else [], "1")  # every access is watched
            bad = [f"--deselect={test}" for test in self.bad]
            plain = ["-x", "-q", "-p", "tests.mutants.meet", "-p", "no:cacheprovider", "-p", "no:xdist"]
            command = [sys.executable, "-m", "pytest", *plain, *bad, f"--basetemp={scratch}/pytest", *words]
            silent = dict.fromkeys(("stdin", "stdout", "stderr"), subprocess.DEVNULL)
            running = subprocess.Popen(
                command, cwd=self.root, env=environ, start_new_session=True, preexec_fn=_bounded, **silent
            )
            try:
                code = running.wait(budget + 3 * self.given.limit)
            except subprocess.TimeoutExpired:  # before the first test, or after the last
                code = -1
            with contextlib.suppress(ProcessLookupError):
                os.killpg(running.pid, signal.SIGKILL)  # with what it has started and left
            running.wait()
            return code in (0, 5), (log.read_text().splitlines() or [""])[-1]

    def _caches(self, mutant: Mutant | None, unchanged: str, scratch: Path) -> dict[str, str]:
        """Where compiled kernels are: a mutant sees those that do not depend on its file, and leaves none behind."""
        kernels, cache = self.folder / "kernels", self.folder / "cache"
        if mutant and mutant.path.startswith("cpu/"):
            old, kernels = kernels / unchanged, scratch / "kernels"
            for folder, module in self._unaffected(mutant.path):
                for file in old.glob(f"{folder}_*/{module}.*"):
                    there = kernels / self._digest() / file.parent.name
                    there.mkdir(mode=0o700, parents=True, exist_ok=True)
                    os.link(file, there / file.name)
        if mutant and mutant.path.startswith("gpu/"):  # names are hashes of all that is compiled
            shutil.copytree(cache, cache := scratch / "cache", copy_function=os.link)
        silent = {"PYTHONDONTWRITEBYTECODE": "1"} if mutant else {}
        return {"NUMBA_CACHE_DIR": str(kernels), "XDG_CACHE_HOME": str(cache)} | silent

    def _digest(self) -> str:
        """The name of the folder of kernels for cpu/ as it is in the copy now; by the sources' code, not the mutant's."""
        spec = importlib.util.spec_from_file_location("kernel_cache", ROOT / "cpu/runtime/cache.py")
        assert spec and spec.loader
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        module.__file__ = str(self.root / "cpu/runtime/cache.py")
        return str(module.digest())

    def _unaffected(self, path: str) -> set[tuple[str, str]]:
        """Folders and modules of cpu/ that neither are this file nor import it: Numba looks at a kernel's own file only."""
        affected = edge = {Path(path).with_suffix("").as_posix().replace("/", ".").removesuffix(".__init__")}
        while edge := {name for one in edge for name in self.selection.importers.get(one, ())} - affected:
            affected = affected | edge
        files = [file.relative_to(self.root).with_suffix("") for file in (self.root / "cpu").rglob("*.py")]
        unaffected = [file for file in files if file.as_posix().replace("/", ".") not in affected]
        return set() if "cpu" in affected else {(file.parent.name, file.name) for file in unaffected}


def _bounded() -> None:
    resource.setrlimit(resource.RLIMIT_DATA, (8 << 30, 8 << 30))
    resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 30, 1 << 30))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


def table(results: list[tuple[Mutant, Result | None]]) -> str:
    """A line for each package: how many were drawn, those that no test should see, and the shares killed of the others."""
    lines = ["| package | drawn | equivalent | killed by make test | by make test-all |", "|---|" + "---:|" * 4]
    for package in sorted({mutant.path.split("/")[0] for mutant, _ in results}):
        of = [result for mutant, result in results if mutant.path.startswith(f"{package}/")]
        met = [result for result in of if result]
        early, late = (sum(one.killed and one.tier in tiers for one in met) for tiers in (["test"], TIERS))
        shares = (f"{killed} ({killed / len(met):.1%})" if met else "-" for killed in (early, late))
        lines.append(f"| {package} | {len(of)} | {len(of) - len(met)} | " + " | ".join(shares) + " |")
    return "\n".join(lines)


def main() -> int:
    """Run what is drawn, then tell."""
    parser = argparse.ArgumentParser(prog="python -m tests.mutants", description=__doc__)
    paths = ["hybrid", "cpu", "gpu"]
    parser.add_argument("--paths", nargs="+", default=paths, help="files and folders to plant faults in")
    parser.add_argument("--number", type=int, default=500, help="of mutants, shared evenly by the paths (default: 500)")
    parser.add_argument("--seed", type=int, default=7)
    parser.add_argument("--only", metavar="KEY", nargs="+", help="run these mutants alone")
    parser.add_argument("--limit", type=float, default=120.0, help="seconds for one test (default: 120)")
    parser.add_argument("--jobs", type=int, default=2, help="mutants at once (default: 2)")
    parser.add_argument("--folder", type=Path, default=ROOT / "build" / "mutants")
    given = parser.parse_args()
    chosen = list[Mutant]()
    for path in given.paths:
        files = [ROOT / path] if (ROOT / path).is_file() else sorted((ROOT / path).rglob("*.*"))
        files = [file for file in files if file.suffix in (".py", ".cu", ".cuh")]
        every = [one for file in files for one in mutants(file.relative_to(ROOT).as_posix(), file.read_text())]
        number = -(-given.number // len(given.paths))
        chosen += [one for one in every if one.key in given.only] if given.only else drawn(every, number, given.seed)
    lines = EQUIVALENT.read_text().splitlines() if EQUIVALENT.exists() else []
    equivalent = {line for line in lines if line and not line.startswith((" ", "#"))}
    left = [one for one in chosen if given.only or one.name not in equivalent]
    results = run(left, given.folder.resolve(), given) if left else {}
    for mutant in left:
        if not results[mutant.name].killed:
            print(f"survived: {mutant.name}\n    python -m tests.mutants --paths {mutant.path} --only {mutant.key}")
    print(table([(one, results.get(one.name)) for one in chosen]))
    return 0


def run(left: list[Mutant], folder: Path, given: argparse.Namespace) -> dict[str, Result]:
    """Let mutants meet their tests, some at once; the results by name."""
    folder.mkdir(parents=True, exist_ok=True)
    selection, free = Selection(ROOT), queue.SimpleQueue[Worker]()
    for number in range(min(given.jobs, len(left))):
        (folder / str(number)).mkdir(exist_ok=True)
        free.put(Worker(folder / str(number), selection, given))
    results: dict[str, Result] = {}

    def one(mutant: Mutant) -> None:
        worker = free.get()
        try:
            result = results[mutant.name] = worker.result(mutant)
        finally:
            free.put(worker)
        done = f"{len(results)}/{len(left)} {result.seconds:6.1f} s"
        print(f"{done}  {mutant.key}  {mutant.name}  {result.by}", flush=True)

    with ThreadPoolExecutor(given.jobs) as pool:
        list(pool.map(one, left))
    return results


if __name__ == "__main__":
    sys.exit(main())
