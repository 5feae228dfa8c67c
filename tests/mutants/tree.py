"""The copy of the sources that mutants are planted in, and what of earlier compilations a mutant may use."""

import contextlib
import importlib.util
import os
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

from tests.support.imports import graph

LEFT_OUT = {".git", ".venv", "build", "dist"}


class Tree:
    """A copy of a tree of sources in a folder of its own; the sources are only read.

    source  the root of the sources
    folder  where everything is kept: the copy, what was compiled of it, what one run of tests leaves
    """

    def __init__(self, source: Path, folder: Path):
        self.source, self.root = source, folder / "tree"
        self.kernels, self.cache, self._scratch = folder / "kernels", folder / "cache", folder / "scratch"
        for made in (self.root, self.kernels, self.cache):
            made.mkdir(parents=True, exist_ok=True)
        self._clean()
        self._copy()

    def _copy(self) -> None:
        """Make the copy equal to the sources. Files keep their times: what was compiled of them holds."""
        kept = set()
        for folder, folders, files in os.walk(self.source):
            folders[:] = [name for name in folders if name not in LEFT_OUT and not name.endswith(("cache", "cache__"))]
            there = self.root / os.path.relpath(folder, self.source)
            there.mkdir(exist_ok=True)
            kept.add(there)
            for name in files:
                old, new = Path(folder, name), there / name
                kept.add(new)
                if not (new.exists() and new.stat().st_mtime_ns == old.stat().st_mtime_ns and _same(new, old)):
                    shutil.copy2(old, new)
        for path in sorted(self.root.rglob("*"), reverse=True):
            if path not in kept and "build" not in path.relative_to(self.root).parts:
                shutil.rmtree(path) if path.is_dir() and not path.is_symlink() else path.unlink(missing_ok=True)

    @contextlib.contextmanager
    def planted(self, path: str, text: str) -> Iterator[dict[str, str]]:
        """A context in which a file of the copy has this text; gives the environment for tests.

        What is compiled meanwhile is thrown away afterwards, where it depends on the file; of what was compiled before tests
        see what does not depend on it.
        """
        file = self.root / path
        before, times = file.read_bytes(), (file.stat().st_atime_ns, file.stat().st_mtime_ns)
        caches = self._digest(path)
        file.write_text(text)
        try:
            yield self._environment(path, caches)
        finally:
            file.write_bytes(before)
            os.utime(file, ns=times)
            self._clean()

    def unchanged(self) -> dict[str, str]:
        """The environment for tests of the copy as it is; the compiled kernels are kept."""
        self._clean()
        return self._variables(self.kernels, self.cache)

    def _environment(self, path: str, before: str) -> dict[str, str]:
        kernels, cache = self.kernels, self.cache
        if path.startswith("cpu/"):
            kernels = self.scratch / "kernels"
            self._keep(path, self.kernels / before, kernels / self._digest(path))
        if path.endswith((".cu", ".cuh")):  # their names are hashes of all that is compiled
            cache = self.scratch / "cache"
            shutil.copytree(self.cache, cache, copy_function=os.link)
        return self._variables(kernels, cache)

    def _digest(self, path: str) -> str:
        """The name of the folder that kernels of cpu/ are in, while its sources are as they are now."""
        module = self.source / "cpu" / "cache.py"  # of the sources: the copy may hold the mutant
        if not (path.startswith("cpu/") and module.exists()):
            return ""
        spec = importlib.util.spec_from_file_location("kernel_cache", module)
        assert spec and spec.loader
        loaded = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(loaded)
        loaded.__file__ = str(self.root / "cpu" / "cache.py")
        return str(loaded._digest())

    def _keep(self, path: str, old: Path, new: Path) -> None:
        """Let a mutant of cpu/ use the kernels of modules that do not import it.

        Numba asks only whether a kernel's own file has changed, so all others of its kernels may hold the old arithmetic.
        """
        for folder in old.glob("cpu_*"):
            there = new / folder.name
            there.mkdir(parents=True, mode=0o700)
            for module in unaffected(path, self.root):
                for file in folder.glob(f"{module}.*"):
                    os.link(file, there / file.name)
        for made in (new, new.parent):
            made.mkdir(parents=True, exist_ok=True, mode=0o700)
            made.chmod(0o700)

    def _variables(self, kernels: Path, cache: Path) -> dict[str, str]:
        home, temporary = self.scratch / "home", self.scratch / "tmp"
        for made in (home, temporary):
            made.mkdir(exist_ok=True)  # what a mutant deletes or fills is not the user's
        return {
            "NUMBA_CACHE_DIR": str(kernels),
            "XDG_CACHE_HOME": str(cache),
            "HOME": str(home),
            "TMPDIR": str(temporary),
            "HYBRID_DATA": str(home / "data"),
        }

    def _clean(self) -> None:
        """Throw away what runs have left, and begin a folder for the next: of the last something may still write."""
        shutil.rmtree(self._scratch, ignore_errors=True)
        self._scratch.mkdir(exist_ok=True)
        self.scratch = Path(tempfile.mkdtemp(dir=self._scratch))


def unaffected(path: str, root: Path) -> set[str]:
    """The modules of cpu/, without the package's name, that neither are this file nor import it, directly or not.

    Nothing is unaffected by the package itself and by what it imports, which changes how all others are compiled.
    """
    edges = graph("cpu", within_functions=True, root=root)
    mutated = Path(path).with_suffix("").as_posix().replace("/", ".").removesuffix(".__init__")
    affected = {mutated}
    while more := {name for name, targets in edges.items() if targets & affected} - affected:
        affected |= more
    if "cpu" in affected:
        return set()
    return {name.partition(".")[2] for name in edges.keys() - affected - {"cpu"}}


def _same(one: Path, other: Path) -> bool:
    return one.stat().st_size == other.stat().st_size and one.read_bytes() == other.read_bytes()
