"""Who imports whom: hybrid -> gpu, cpu; what is slow to import is imported where it is used."""

import ast
import subprocess
import sys

import pytest

from tests.support.imports import ROOT, circles, graph

FORBIDDEN = {"cpu": {"hybrid", "gpu", "bench", "tests"}, "gpu": {"hybrid", "cpu", "bench", "tests"}}
FORBIDDEN["hybrid"] = {"bench", "tests"}
SLOW = {"numba", "scipy", "matplotlib", "annoy", "torch", "pycuda", "mpi4py"}


def sources(*packages):
    return [path for package in packages for path in sorted((ROOT / package).rglob("*.py"))]


def imports(tree: ast.AST, package: str):
    """The top-level names that a tree imports, each with its line; a relative import is one of its own package."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for alias in node.names:
                yield alias.name.split(".")[0], node.lineno
        elif isinstance(node, ast.ImportFrom):
            yield (package if node.level else node.module.split(".")[0]), node.lineno
        elif isinstance(node, ast.Call) and ast.unparse(node.func).endswith(("import_module", "__import__")):
            if isinstance(node.args[0], ast.Constant):
                yield node.args[0].value.split(".")[0], node.lineno


def at_import(body: list[ast.stmt]):
    """The statements that run when a module is imported: all but the bodies of functions."""
    for statement in body:
        if isinstance(statement, ast.FunctionDef | ast.AsyncFunctionDef):
            continue
        yield statement
        for block in ("body", "orelse", "finalbody", "handlers"):
            yield from at_import(getattr(statement, block, []))


def imported_at_once(path):
    """The top-level names that importing a module imports."""
    statements = at_import(ast.parse(path.read_text()).body)
    return {name for one in statements if isinstance(one, ast.Import | ast.ImportFrom) for name, _ in imports(one, "")}


@pytest.mark.parametrize("package", FORBIDDEN)
def test_arrows_point_down(package):
    wrong = [
        f"{path.relative_to(ROOT)}:{line} imports {name}"
        for path in sources(package)
        for name, line in imports(ast.parse(path.read_text()), package)
        if name in FORBIDDEN[package]
    ]
    assert wrong == []


def test_pycuda_is_imported_inside_functions():
    """So that every package can be imported, and its signatures compared, where there is no CUDA."""
    assert [path for path in sources("hybrid", "gpu", "cpu", "bench") if "pycuda" in imported_at_once(path)] == []


def test_mpi_is_imported_by_ranks_alone_and_within_functions():
    """Importing it initialises MPI, which a command of one process must not do."""
    importing = {
        path.relative_to(ROOT).as_posix()
        for path in sources("hybrid", "gpu", "cpu", "bench")
        if any(name == "mpi4py" for name, _ in imports(ast.parse(path.read_text()), ""))
    }
    assert importing and all(path.startswith("hybrid/mpi/") for path in importing - {"bench/step/ranks.py"})
    assert [path for path in importing if "mpi4py" in imported_at_once(ROOT / path)] == []


HELP = "from hybrid import cli; cli.main(['--help'])"


@pytest.mark.parametrize("command", ["import hybrid", HELP, "import hybrid.storage.checkpoint"])
def test_nothing_slow_is_imported_before_it_is_needed(command):
    script = f"import atexit, sys\natexit.register(lambda: print('IMPORTED', *sys.modules))\n{command}"
    done = subprocess.run([sys.executable, "-c", script], cwd=ROOT, capture_output=True, text=True, check=True)
    imported = {name.split(".")[0] for name in done.stdout.split("IMPORTED")[1].split()}
    assert "hybrid" in imported
    assert imported & SLOW == set()


def test_every_folder_of_modules_is_a_package():
    """Another one is left out of a wheel."""
    folders = {path.parent for path in sources("hybrid", "gpu", "cpu", "bench")}
    assert not [folder for folder in folders if not (folder / "__init__.py").exists()]


@pytest.mark.parametrize("package", ["hybrid", "gpu", "cpu", "bench"])
def test_no_module_imports_itself_through_others(package):
    """Nor does it by an import within a function: such a one may save time at the start, but hides no circle."""
    assert circles(graph(package, within_functions=False)) == []
    assert circles(graph(package, within_functions=True)) == []
