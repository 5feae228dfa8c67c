"""The steps of `python -m bench all`: each is one of the benchmarks as its own process.

The files of bench/sections, which have `section(records) -> Section`, may have STEPS, which make their records, and PLACE, a
number by which sections are sorted on the page (others: in the middle, by name).
"""

import importlib
import importlib.util
import os
import pkgutil
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType

from bench import sections
from hybrid.machine import memory

MIDDLE = 50  # the place of a section that says none
GIB = 2**30


@dataclass(frozen=True)
class Step:
    """One benchmark.

    name          as progress and gaps show it
    command       what follows `python -m bench`, without --json, --threads, --repeat
    worth         steps that are worth more go first
    minutes       about, of the full size on two cores: what is left is guessed by it until the machine has shown its pace
    quick         the command in quick mode, to which --quick is added; None: it has no small size
    needs         what the machine must have: names of NEEDS
    memory        GiB of the full size
    """

    name: str
    command: tuple[str, ...]
    worth: int
    minutes: float
    quick: tuple[str, ...] | None = None
    needs: tuple[str, ...] = ()
    memory: float = 0.0


def found_sections() -> dict[str, ModuleType]:
    """The files of bench/sections by name, in the order of the page."""
    names = (found.name for found in pkgutil.iter_modules(sections.__path__))
    modules = {name: importlib.import_module(f"bench.sections.{name}") for name in names}
    return dict(sorted(modules.items(), key=lambda one: (getattr(one[1], "PLACE", MIDDLE), one[0])))


def found_steps(only: Sequence[str] | None = None) -> list[tuple[str, Step]]:
    """The steps of all sections, or of some, with the names of the sections; those of most worth first."""
    steps = [
        (name, step)
        for name, module in found_sections().items()
        if not only or name in only
        for step in getattr(module, "STEPS", ())
    ]
    return sorted(steps, key=lambda one: -one[1].worth)


def lacks(step: Step, quick: bool) -> str | None:
    """Why this machine cannot do a step; None where it can."""
    if quick and step.quick is None:
        return "it has no small size, and this is quick mode"
    for need in step.needs:
        if reason := NEEDS[need]():
            return reason
    if quick:
        return None
    has = memory()
    if has is not None and step.memory * GIB > has:
        return f"it takes {step.memory:g} GiB of memory, and the machine has {has / GIB:.1f}"
    return None


def _module(name: str, extra: str) -> Callable[[], str | None]:
    def missing() -> str | None:
        if importlib.util.find_spec(name):
            return None
        return f"{name} is not installed: pip install 'hybrid-engine[{extra}]'"

    return missing


def _data(name: str) -> Callable[[], str | None]:
    def missing() -> str | None:
        path = Path(os.environ.get("HYBRID_DATA", "data")) / name
        return None if path.exists() else f"{path} is not there; HYBRID_DATA names the folder that holds {name}"

    return missing


NEEDS: dict[str, Callable[[], str | None]] = {
    "labels": _data("labels/cooking.train"),
    "ml-100k": _data("ml-100k/u.data"),
    "mpi": _module("mpi4py", "mpi"),
    "torch": _module("torch", "bench"),
    "wikitext-2": _data("wikitext-2"),
}
