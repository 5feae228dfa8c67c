"""Kinds of a part, found by name: the modules of a package, and those that other installed distributions offer.

A distribution offers a module by an entry point, in its pyproject.toml:

    [project.entry-points."hybrid.models"]
    regression = "my_package.regression"
"""

import functools
import importlib
import pkgutil
from importlib.metadata import EntryPoint, entry_points
from types import ModuleType
from typing import Any


class Registry:
    """The kinds that can be named.

    package  each module of it is a kind, named as its file; packages within it are none, nor what begins with "_"
    group    of the entry points by which other distributions offer kinds
    what     what they are called in messages: "model", "readout", "trunk"
    """

    def __init__(self, package: str, group: str, what: str):
        self.package, self.group, self.what = package, group, what

    def names(self) -> list[str]:
        """All names, in alphabetical order; nothing is imported for it."""
        return sorted({*self._own(), *self._offered()})

    def load(self, name: Any) -> ModuleType:
        """The module of this name; a kind of ours comes before one offered under the same name.

        Raises ValueError for a name that is not known, and for one whose module cannot be imported.
        """
        if not isinstance(name, str):  # as a file of a stranger may say
            raise ValueError(f"{self.what}: found {name!r}, expected one of {', '.join(self.names())}")
        if name in self._own():
            return importlib.import_module(f"{self.package}.{name}")
        if name not in self._offered():
            raise ValueError(f"{self.what}: found {name!r}, expected one of {', '.join(self.names())}")
        offered = self._offered()[name]
        try:
            module: ModuleType = offered.load()
        except (ImportError, AttributeError) as failure:
            whose = offered.dist.name if offered.dist else "an installed distribution"
            raise ValueError(f"{self.what} {name!r}, offered by {whose}: {failure}") from failure
        return module

    def having(self, attribute: str) -> list[str]:
        """The names of those kinds whose module has an attribute."""
        return [name for name in self.names() if hasattr(self.load(name), attribute)]

    def _own(self) -> frozenset[str]:
        return _modules(self.package)

    def _offered(self) -> dict[str, EntryPoint]:
        return {entry.name: entry for entry in entry_points(group=self.group)}


@functools.cache
def _modules(package: str) -> frozenset[str]:
    path = importlib.import_module(package).__path__
    return frozenset(
        module.name for module in pkgutil.iter_modules(path) if not (module.ispkg or module.name.startswith("_"))
    )
