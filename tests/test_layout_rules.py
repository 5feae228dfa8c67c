"""Sizes that a reader can hold: of a file, and of a constructor."""

import inspect
import typing

import pytest

import hybrid
from tests.support.imports import ROOT

MOST_LINES, MOST_PARAMETERS = 800, 8
SOURCES = ("hybrid", "cpu", "gpu", "bench", "examples", "tests")
ENDINGS = {".py", ".cu", ".cuh", ".cpp", ".h", ".html"}


def test_no_file_is_long():
    paths = [path for source in SOURCES for path in (ROOT / source).rglob("*") if path.suffix in ENDINGS]
    assert len(paths) > 100
    long = {path.relative_to(ROOT).as_posix() for path in paths if path.read_bytes().count(b"\n") > MOST_LINES}
    assert long == set(), f"files over {MOST_LINES} lines"


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
