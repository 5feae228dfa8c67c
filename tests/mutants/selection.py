"""Which tests a mutant meets: first those that belong to its file, then those that import it and those of its package, since
not all imports can be seen: some modules are imported by a name that a user gives. The nearest come first.

The tests of one kernel may fill several files: to it belong, beside the mirrored one, those that name its path.
"""

import functools
import re
from pathlib import Path

from tests.support.imports import graph

APART = (
    "tests.bench.",
    "tests.docs.",
    "tests.examples.",
    "tests.mutants.",
)  # they use all there is, and seldom look closely
INCLUDE = re.compile(r'^#include "(\w+\.cuh)"', re.M)


def mirrored(module: str) -> str:
    """The test file of a module: hybrid/x/y.py has tests/hybrid/x/test_y.py, a package a file of its own name."""
    path = Path(module)
    path = path.parent if path.name == "__init__.py" else path
    return f"tests/{path.parent}/test_{path.stem.removeprefix('_')}.py"


class Selection:
    """The test files for each file of a tree."""

    def __init__(self, root: Path):
        self.root = root
        packages = [package for package in ("hybrid", "cpu", "gpu", "tests") if (root / package).is_dir()]
        packages += [
            path.name for path in root.iterdir() if (path / "__init__.py").exists() and path.name not in packages
        ]
        self._importers: dict[str, set[str]] = {}
        for name, targets in graph(*packages, within_functions=True, root=root).items():
            for target in targets:
                self._importers.setdefault(target, set()).add(name)

    @functools.cache  # noqa: B019  one selection lives as long as the campaign
    def own(self, path: str) -> list[str]:
        """The test files that belong to a file: the mirrored one; of a header those of its kernels."""
        if path.endswith(".cuh"):
            kernels = [kernel for kernel in sorted((self.root / "gpu").glob("*.cu")) if path in self._included(kernel)]
            found = {test for kernel in kernels for test in self.own(f"gpu/{kernel.name}")}
        else:
            module = Path(path).with_suffix(".py").as_posix()
            test = mirrored(module)
            found = {test} if (self.root / test).exists() else set()
        return sorted(found | set(self._naming(path)))

    def _naming(self, path: str) -> list[str]:
        """The test files of kernels that name a kernel's path."""
        if not path.endswith((".cu", ".cuh")):
            return []
        tests = (self.root / "tests" / "gpu").glob("test_*.py")
        return [test.relative_to(self.root).as_posix() for test in tests if re.search(rf"{path}\b", test.read_text())]

    @functools.cache  # noqa: B019
    def others(self, path: str) -> list[str]:
        """The other test files of its package, and those that import it, directly or through other modules."""
        sources = self._modules(path)
        seen, edge, found = set(sources), sources, []
        while edge:
            edge = sorted({importer for name in edge for importer in self._importers.get(name, ())} - seen)
            seen |= set(edge)
            tests = [name for name in edge if name.rpartition(".")[2].startswith("test_")]
            found += sorted(tests, key=lambda name: _distance(path, name))
        tests = [f"{name.replace('.', '/')}.py" for name in found if not name.startswith(APART)]
        beside = self._beside(path)
        met = beside + tests if path.startswith("hybrid/") else tests + beside
        return [test for test in dict.fromkeys(met) if test not in self.own(path)]

    def _beside(self, path: str) -> list[str]:
        """The test files of the folder and of the one above, but not all of tests/hybrid; first those named like the file."""
        folders = [folder for folder in Path("tests", path).parents[:-2] if folder != Path("tests", "hybrid")]
        return [
            test.relative_to(self.root).as_posix()
            for folder in folders[:2]
            for test in sorted(
                (self.root / folder).glob("test_*.py"), key=lambda test: (Path(path).stem not in test.stem, test)
            )
        ]

    def _modules(self, path: str) -> list[str]:
        if path.endswith(".cuh"):
            kernels = (kernel for kernel in (self.root / "gpu").glob("*.cu") if path in self._included(kernel))
            return sorted(f"gpu.{kernel.stem}" for kernel in kernels)
        return [Path(path).with_suffix("").as_posix().replace("/", ".").removesuffix(".__init__")]

    def _included(self, kernel: Path) -> set[str]:
        """The headers that a kernel's file includes, directly or not, as paths from the root."""
        found: set[str] = set()
        left = INCLUDE.findall(kernel.read_text())
        while left:
            if (name := f"gpu/{left.pop()}") not in found:
                found.add(name)
                left += INCLUDE.findall((self.root / name).read_text())
        return found


def _distance(path: str, test: str) -> tuple[bool, bool]:
    """Tests whose name begins like that of the file come first, then those of its package."""
    folder, _, name = test.rpartition(".")
    package = folder.startswith(f"tests.{path.partition('/')[0]}")
    return not (package and name.startswith(f"test_{Path(path).stem}")), not package
