"""Functions that only compiled ones can call are called by no other: such a call would end the process without a word."""

import ast
import importlib
import inspect
from pathlib import Path

import pytest
from numba.core.dispatcher import Dispatcher

import cpu

ROOT = Path(cpu.__path__[0])
NAMES = [path.relative_to(ROOT).with_suffix("").parts for path in sorted(ROOT.rglob("[!_]*.py"))]
MODULES = [importlib.import_module(".".join(("cpu", *name))) for name in NAMES]


def only_compiled(function):
    return isinstance(function, Dispatcher) and bool(function.targetoptions.get("no_cpython_wrapper"))


def named_by_python(module):
    """Names in the plain functions of a module: a decorated one is Numba's, at the top and within another."""

    def names(node):
        for child in ast.iter_child_nodes(node):
            if not getattr(child, "decorator_list", []):
                if isinstance(child, ast.Name):
                    yield child.id
                yield from names(child)

    return set(names(ast.parse(inspect.getsource(module))))


@pytest.mark.parametrize("module", MODULES, ids=lambda module: module.__name__)
def test_no_python_calls_what_is_for_compiled_functions_only(module):
    functions = {name for name, value in vars(module).items() if only_compiled(value)}
    assert not functions & named_by_python(module)
