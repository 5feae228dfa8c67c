"""The limits of CONTRIBUTING.md: sizes of files and functions, no small module with one importer, packages in one direction."""

import ast
import inspect
import subprocess
import sys
import tomllib
import typing

import pytest

import hybrid
from tests.support.imports import ROOT, circles, graph, modules

MOST_LINES, MOST_OF_A_FUNCTION, LEAST_OF_A_MODULE, MOST_MODULES = 800, 60, 130, 60
MOST_PARAMETERS = 8  # of a constructor
OURS = ("hybrid", "cpu", "gpu")
ENDINGS = {".py", ".cu", ".cuh", ".cpp", ".h", ".html"}
# Packages whose modules a registry, the backend, `hybrid.NAME` or Python itself finds by name.
BY_NAME = {f"hybrid.{name}" for name in "cli cli.commands formats models readout".split()}
BY_NAME |= {"cpu", "gpu", "hybrid.sklearn", "hybrid.torch", "hybrid.trunk"}
ALONE = {
    "cpu.runtime.cache": "read by tests.mutants without the package",
    "cpu.runtime.machine_code": "set before the first kernel",
    "gpu.runtime.available": "imported by hybrid.backend under its name",
    "hybrid.__main__": "run by python -m hybrid",
}
LANGUAGE_MODEL = """
import sys
from hybrid import MLP, Corpus, Embedding, Engine, LanguageFeed, TreeReadout, Vocabulary, text

sentences = [["a", "b", "c", "d"]] * 20
corpus = Corpus(sentences, Vocabulary.build(sentences))
feed = LanguageFeed(corpus, context=2, batch=16)
engine = Engine(Embedding(feed.rows, 8, per_example=2), MLP([16, 8]), TreeReadout(feed.counts, 8), device="cpu")
assert len(list(engine.run(feed))) == len(feed) and engine.best([[0, 1]], k=2)
print(*(name for name in sys.modules if name.partition(".")[0] in ("hybrid", "cpu", "gpu")))
"""


def lines(path):
    return path.read_bytes().count(b"\n")


def test_no_file_is_long():
    folders = (*OURS, "bench", "examples", "tests")
    paths = [path for folder in folders for path in (ROOT / folder).rglob("*") if path.suffix in ENDINGS]
    assert len(paths) > 100
    assert [path.relative_to(ROOT).as_posix() for path in paths if lines(path) > MOST_LINES] == []


def test_no_function_is_long():
    long = []
    for package in (*OURS, "bench"):
        for name, path in modules(package).items():
            functions = [node for node in ast.walk(ast.parse(path.read_text())) if isinstance(node, ast.FunctionDef)]
            long += [f"{name}.{one.name}" for one in functions if one.end_lineno - one.lineno >= MOST_OF_A_FUNCTION]
    assert long == []


def test_a_small_module_has_several_importers():
    """What one module alone needs is a part of it."""
    edges = graph(*OURS, within_functions=True)
    public = {f"hybrid.{home}" for home in (hybrid._HOME | hybrid._MODULES).values()}
    small = []
    for name, path in ((name, path) for package in OURS for name, path in modules(package).items()):
        by_name = path.name == "__init__.py" or name.rpartition(".")[0] in BY_NAME or name in public or name in ALONE
        importers = sum(name in targets for targets in edges.values())
        if not by_name and lines(path) < LEAST_OF_A_MODULE and importers < 2:
            small.append(name)
    assert small == []


def test_packages_import_each_other_in_one_direction():
    edges = graph(*OURS, within_functions=True)
    packages = {package_of(name): set() for name in edges}
    for name, targets in edges.items():
        packages[package_of(name)] |= {package_of(target) for target in targets} - {package_of(name)}
    assert len(packages) > 20 and circles(packages) == []


def package_of(module):
    """`hybrid.engine` of hybrid.engine.route, `cpu` of cpu.tree.tree."""
    return ".".join(module.split(".")[: 2 if module.startswith("hybrid.") else 1])


def test_a_language_model_on_the_cpu_imports_few_modules_and_nothing_of_mpi():
    done = subprocess.run([sys.executable, "-c", LANGUAGE_MODEL], capture_output=True, text=True, cwd=ROOT, check=True)
    names = done.stdout.split()
    assert 20 < len(names) <= MOST_MODULES, names
    assert not any(name.startswith("hybrid.mpi") for name in names)


def parameters(made):
    """The names that a call may say; those of a TypedDict count one by one, and other **settings, of another part, as one."""
    names = []
    for one in inspect.signature(made.__init__ if inspect.isclass(made) else made).parameters.values():
        several = typing.get_origin(one.annotation) is typing.Unpack
        names += typing.get_args(one.annotation)[0].__annotations__ if several else [one.name]
    return [name for name in names if name != "self"]


def test_no_public_constructor_has_many_parameters():
    """Those of hybrid.sklearn have more: scikit-learn's get_params, grids and clones need flat ones."""
    public = {name: getattr(hybrid, name) for name in hybrid.__all__}
    pytest.importorskip("torch")
    import hybrid.torch as losses

    public |= {f"torch.{name}": getattr(losses, name) for name in losses.__all__}
    made = {name: parameters(one) for name, one in public.items() if not inspect.ismodule(one)}
    assert len(made) > 50 and len(made["TreeReadout"]) == 8 and "biases" in made["TreeReadout"]
    many = {name: names for name, names in made.items() if len(names) > MOST_PARAMETERS}
    assert many == {}, f"more than {MOST_PARAMETERS} parameters; what more a part knows stands in a dataclass"


def test_a_wheel_has_the_kernels():
    """The .cu and .cuh files are compiled on the user's machine; setuptools packs only Python unless told."""
    told = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["setuptools"]["package-data"]
    data = {path for path in (ROOT / "gpu").rglob("*") if path.is_file() and path.suffix not in (".py", ".pyc")}
    assert data and data <= {path for pattern in told["gpu"] for path in (ROOT / "gpu").glob(pattern)}
