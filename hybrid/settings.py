"""Kinds of models, readouts and trunks, found by name, and their options.

Options are fields of frozen dataclasses, from which parsers, defaults and checks are made.
"""

import argparse
import dataclasses
import functools
import importlib
import itertools
import math
import pkgutil
from collections.abc import Mapping
from importlib.metadata import EntryPoint, entry_points
from types import ModuleType
from typing import Any


class Registry:
    """The kinds of a part that can be named; another distribution offers one by an entry point in its pyproject.toml:

        [project.entry-points."hybrid.models"]
        regression = "my_package.regression"

    package  each module of it is a kind, named as its file; packages within it are none, nor `base` and what begins with "_"
    group    of the entry points by which other distributions offer kinds
    what     what they are called in messages: "model", "readout", "trunk"
    """

    def __init__(self, package: str, group: str, what: str):
        self.package, self.group, self.what = package, group, what

    def names(self) -> list[str]:
        """All names, in alphabetical order; nothing is imported for it."""
        return sorted({*_modules(self.package), *self._offered()})

    def load(self, name: Any) -> ModuleType:
        """The module of this name; a kind of ours comes before one offered under the same name.

        Raises ValueError for a name that is not known, and for one whose module cannot be imported.
        """
        if isinstance(name, str) and name in _modules(self.package):
            return importlib.import_module(f"{self.package}.{name}")
        offers = self._offered()  # reads the metadata of all distributions, which takes 15 ms
        if not isinstance(name, str) or name not in offers:  # a stranger's file may say anything
            raise ValueError(f"{self.what}: found {name!r}, expected one of {', '.join(self.names())}")
        offered = offers[name]
        try:
            module: ModuleType = offered.load()
        except (ImportError, AttributeError) as failure:
            whose = offered.dist.name if offered.dist else "an installed distribution"
            raise ValueError(f"{self.what} {name!r}, offered by {whose}: {failure}") from failure
        return module

    def having(self, attribute: str) -> list[str]:
        """The names of those kinds whose module has an attribute."""
        return [name for name in self.names() if hasattr(self.load(name), attribute)]

    def _offered(self) -> dict[str, EntryPoint]:
        return {entry.name: entry for entry in entry_points(group=self.group)}


MODELS = Registry("hybrid.models", "hybrid.models", "model")  # here: what loads models by name imports none of them


@functools.cache
def _modules(package: str) -> frozenset[str]:
    modules = pkgutil.iter_modules(importlib.import_module(package).__path__)
    return frozenset(one.name for one in modules if not (one.ispkg or one.name == "base" or one.name.startswith("_")))


def option(
    default: Any,
    help: str,
    *,
    group: str = "model",
    free: bool = False,
    needed: bool = False,
    kept: bool = True,
    registry: Registry | None = None,
    by: tuple[str, Mapping[str, Any]] | None = None,
    **argument: Any,
) -> Any:
    """A field of a dataclass of options; its name with dashes is the flag on the command line.

    default   what it is where the user does not say; False makes a flag without a value
    help      a line for `--help`, which adds the default
    group     the heading under which `--help` lists it: "data", "model", "training" or "the run"
    free      whether a run may go on with another value than the one that it was begun with: it changes no number
    needed    whether the user has to say it
    kept      whether it belongs to the run; otherwise to the command that begins it or goes on with it
    registry  where the value is the name of a part: the kinds that it may name, which may have options of their own
    by        another option, and what this one's default is under values of that: of an optimiser, its rate; a name in place
              of a number: as under that value
    argument  keywords of argparse's add_argument: type, choices, metavar, nargs, action, ...
    """
    facts = {"help": help, "group": group, "free": free, "needed": needed, "kept": kept, "by": by}
    return dataclasses.field(default=default, metadata=facts | {"registry": registry, "argument": argument})


def fields(options: type | None) -> dict[str, dataclasses.Field[Any]]:
    """The options that a dataclass declares, by name; of None, which declares none, {}."""
    return {field.name: field for field in dataclasses.fields(options)} if options else {}


def defaults(options: type | None) -> dict[str, Any]:
    """The default of every option that a dataclass declares."""
    return {name: field.default for name, field in fields(options).items()}


def possible(field: dataclasses.Field[Any], value: Any) -> bool:
    """Whether an option may have a value that a file says: its default, or one that its flag makes of a text."""
    if value is None:
        return "None" in str(field.type) and not field.metadata["needed"]
    if type(value) is type(field.default) and value == field.default:
        return True
    if isinstance(field.default, bool):
        return isinstance(value, bool)
    argument = field.metadata["argument"]
    read = argument.get("type", str)
    try:
        made = [read(text) for text in value] if argument.get("action") == "append" else read(_text(value))
    except (TypeError, AttributeError, ValueError, argparse.ArgumentTypeError):
        return False
    same = made == value or (isinstance(made, str) and isinstance(value, str))  # of paths it makes absolute ones
    return same and made in argument.get("choices", [made])


def _text(value: Any) -> str:
    """What a user types for a value; TypeError for one that nobody can type."""
    if isinstance(value, list):
        return ",".join(map(_text, value))
    if isinstance(value, bool) or not isinstance(value, str | int | float):
        raise TypeError
    return str(value)


def flag(name: str) -> str:
    """How a user types an option: rows_rate -> --rows-rate."""
    return "--" + name.replace("_", "-")


def given(options: Mapping[str, Any]) -> dict[str, Any]:
    """Those options that a user has said: in parsers every default is None, or False for a flag without a value."""
    return {name: value for name, value in options.items() if value is not None and value is not False}


MOST = 10**9  # of anything that is counted: beyond it sizes overflow before memory does


def positive(text: str) -> int:
    """A whole number of at least 1."""
    return _whole(text, 1)


def whole(text: str) -> int:
    """A whole number of at least 0."""
    return _whole(text, 0)


def number(text: str) -> float:
    """A finite number of at least 0."""
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not 0 <= value < math.inf:
        raise argparse.ArgumentTypeError(f"found {text!r}, expected a number of at least 0")
    return value


def rising(text: str) -> list[int]:
    """Whole numbers of at least 1 with commas between them, each above the one before."""
    values = [positive(part) for part in text.split(",")]
    if any(after <= before for before, after in itertools.pairwise(values)):
        raise argparse.ArgumentTypeError(f"found {text!r}, expected numbers that rise")
    return values


def names(text: str) -> list[str]:
    """Names with commas between them."""
    return text.split(",")


def _whole(text: str, low: int) -> int:
    value = int(text) if text.isascii() and text.isdigit() else -1
    if not low <= value <= MOST:
        raise argparse.ArgumentTypeError(f"found {text!r}, expected a whole number from {low} to {MOST:,}")
    return value
