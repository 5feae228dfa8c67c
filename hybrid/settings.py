"""Registries of models, readouts and trunks by name, and their options.

Options are fields of frozen dataclasses, from which parsers, defaults and checks are derived.
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
    """The kinds of a part, by name. Other distributions add one by an entry point in pyproject.toml:

        [project.entry-points."hybrid.models"]
        regression = "my_package.regression"

    package  each module is a kind named as its file, except subpackages, `base` and names that begin with "_"
    group    the entry point group for kinds of other distributions
    what     the word in messages: "model", "readout", "trunk"
    """

    def __init__(self, package: str, group: str, what: str):
        self.package, self.group, self.what = package, group, what

    def names(self) -> list[str]:
        """Returns all names in alphabetical order, without importing the kinds."""
        return sorted({*_modules(self.package), *self._offered()})

    def load(self, name: Any) -> ModuleType:
        """Returns the module of this name, built-in kinds first; ValueError if it is unknown or cannot be imported."""
        if isinstance(name, str) and name in _modules(self.package):
            return importlib.import_module(f"{self.package}.{name}")
        offers = self._offered()  # reads the metadata of all distributions: 15 ms
        if not isinstance(name, str) or name not in offers:  # untrusted files may hold any value
            raise ValueError(f"{self.what}: found {name!r}, expected one of {', '.join(self.names())}")
        offered = offers[name]
        try:
            module: ModuleType = offered.load()
        except (ImportError, AttributeError) as failure:
            whose = offered.dist.name if offered.dist else "an installed distribution"
            raise ValueError(f"{self.what} {name!r}, offered by {whose}: {failure}") from failure
        return module

    def having(self, attribute: str) -> list[str]:
        """Returns the names of kinds whose module has an attribute."""
        return [name for name in self.names() if hasattr(self.load(name), attribute)]

    def _offered(self) -> dict[str, EntryPoint]:
        return {entry.name: entry for entry in entry_points(group=self.group)}


MODELS = Registry("hybrid.models", "hybrid.models", "model")  # here: loading by name imports no model


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
    """Returns a dataclass field that declares an option; its name with dashes is the command line flag.

    default   value if the option is not given; False makes a flag without a value
    help      a line for `--help`, which adds the default
    group     heading in `--help`: "data", "model", "training" or "the run"
    free      True if a resumed run may change the value: it affects no result
    needed    True if the option is required
    kept      True if it is stored with the run; otherwise it belongs to the command that starts or resumes it
    registry  the kinds that it may name, if the value names a part; these may have options of their own
    by        another option and a mapping of its values to this default, such as optimiser to rate; a name in place of a
              number refers to that value's default
    argument  keywords of argparse's add_argument: type, choices, metavar, nargs, action, ...
    """
    facts = {"help": help, "group": group, "free": free, "needed": needed, "kept": kept, "by": by}
    return dataclasses.field(default=default, metadata=facts | {"registry": registry, "argument": argument})


def fields(options: type | None) -> dict[str, dataclasses.Field[Any]]:
    """Returns the declared options of a dataclass by name; {} for None."""
    return {field.name: field for field in dataclasses.fields(options)} if options else {}


def defaults(options: type | None) -> dict[str, Any]:
    """Returns the default of every option that a dataclass declares."""
    return {name: field.default for name, field in fields(options).items()}


def possible(field: dataclasses.Field[Any], value: Any) -> bool:
    """True if an option may have this value from a file: its default, or one that its flag parses from text."""
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
    same = made == value or (isinstance(made, str) and isinstance(value, str))  # path types return absolute paths
    return same and made in argument.get("choices", [made])


def _text(value: Any) -> str:
    """Returns the text a user types for a value; TypeError for a value that cannot be typed."""
    if isinstance(value, list):
        return ",".join(map(_text, value))
    if isinstance(value, bool) or not isinstance(value, str | int | float):
        raise TypeError
    return str(value)


def flag(name: str) -> str:
    """Returns the flag of an option: rows_rate -> --rows-rate."""
    return "--" + name.replace("_", "-")


def given(options: Mapping[str, Any]) -> dict[str, Any]:
    """Returns the options given by the user: parser defaults are None, or False for a flag without a value."""
    return {name: value for name, value in options.items() if value is not None and value is not False}


MOST = 10**9  # limit of any count: beyond it sizes overflow before memory runs out


def positive(text: str) -> int:
    """Parses a whole number of at least 1."""
    return _whole(text, 1)


def whole(text: str) -> int:
    """Parses a whole number of at least 0."""
    return _whole(text, 0)


def number(text: str) -> float:
    """Parses a finite number of at least 0."""
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not 0 <= value < math.inf:
        raise argparse.ArgumentTypeError(f"found {text!r}, expected a number of at least 0")
    return value


def rising(text: str) -> list[int]:
    """Parses comma-separated, strictly increasing whole numbers of at least 1."""
    values = [positive(part) for part in text.split(",")]
    if any(after <= before for before, after in itertools.pairwise(values)):
        raise argparse.ArgumentTypeError(f"found {text!r}, expected numbers that rise")
    return values


def names(text: str) -> list[str]:
    """Parses comma-separated names."""
    return text.split(",")


def _whole(text: str, low: int) -> int:
    value = int(text) if text.isascii() and text.isdigit() else -1
    if not low <= value <= MOST:
        raise argparse.ArgumentTypeError(f"found {text!r}, expected a whole number from {low} to {MOST:,}")
    return value
