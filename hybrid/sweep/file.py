"""What the file of a sweep says. Whatever is wrong in it is refused by name, with what was found and what is expected."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

from ..models import MODELS
from ..storage import document
from .asked import Asked
from .space import Choice, Range, Space, choice, numbers, plain

# The keys of [sweep] that a strategy needs, and those that it may have with their defaults.
NEEDED: dict[str, tuple[str, ...]] = {"grid": (), "random": ("trials",), "halving": ("trials", "first")}
DEFAULTS: dict[str, dict[str, int]] = {"grid": {}, "random": {"seed": 0}, "halving": {"seed": 0, "factor": 3}}
LEAST = {"trials": 1, "seed": 0, "first": 1, "factor": 2}
GOALS = ("minimise", "maximise")


class Sweep(NamedTuple):
    """A sweep as its file describes it.

    raw       the file as it was read
    model     whose options vary, as `hybrid train` names it
    strategy  "grid", "random" or "halving"
    numbers   trials, seed, first and factor, those that the strategy has
    figure    what trials are compared by; None: what the model's runs watch
    lowest    whether less of the figure is better; where the figure is None it means nothing
    fixed     options that all trials have
    vary      options that differ from trial to trial
    """

    raw: dict[str, Any]
    model: str
    strategy: str
    numbers: dict[str, int]
    figure: str | None
    lowest: bool
    fixed: dict[str, Any]
    vary: Space


def read(path: Path) -> Sweep:
    """Read a file; ValueError, naming it, for whatever cannot be meant, OSError where it cannot be read."""
    with document.named(path):
        return meaning(document.read(path))


def meaning(raw: dict[str, Any]) -> Sweep:
    """What the tables of a file mean; ValueError as `read`."""
    for name, value in raw.items():
        if name not in ("sweep", "fixed", "vary"):
            raise ValueError(f"[{name}]: not known, expected [sweep], [fixed] and [vary]")
        if not isinstance(value, dict):
            raise ValueError(f"{name}: found {value!r}, expected a table: [{name}]")
    said = raw.get("sweep", {})
    model = _one_of("model", said.get("model"), MODELS.names())
    strategy = _one_of("strategy", said.get("strategy"), list(NEEDED))
    found = _numbers(said, strategy)
    figure, lowest = _goal(said)
    asked = Asked(model)
    fixed = _options("fixed", raw, asked, _fixed)
    vary = _options("vary", raw, asked, lambda value: _varied(value, strategy))
    if not vary:
        raise ValueError("[vary]: found nothing, expected an option with more than one value")
    for name in fixed.keys() & vary.keys():
        raise ValueError(f"[vary] {name}: stands in [fixed] too; leave one out")
    if strategy == "halving" and asked.length in vary:
        raise ValueError(
            f"[vary] {asked.length}: halving lengthens trials itself; the most goes to [fixed] {asked.length}"
        )
    _allowed("fixed", {name: (value,) for name, value in fixed.items()}, asked)
    _allowed("vary", {name: value.outermost for name, value in vary.items()}, asked)
    return Sweep(raw, model, strategy, found, figure, lowest, fixed, vary)


def _one_of(name: str, found: Any, names: list[str]) -> str:
    if found not in names:
        raise ValueError(
            f"[sweep] {name}: found {'none' if found is None else repr(found)}, expected one of {', '.join(names)}"
        )
    return str(found)


def _numbers(said: Mapping[str, Any], strategy: str) -> dict[str, int]:
    """Those whole numbers of [sweep] that the strategy has."""
    taken = {*NEEDED[strategy], *DEFAULTS[strategy]}
    for name in said:
        if name not in {"model", "strategy", *GOALS, *taken}:
            why = f"not used by strategy {strategy!r}; leave it out" if name in LEAST else "not known"
            raise ValueError(
                f"[sweep] {name}: {why}; expected {', '.join(['model', 'strategy', *GOALS, *sorted(taken)])}"
            )
    found: dict[str, Any] = DEFAULTS[strategy] | {name: said.get(name) for name in NEEDED[strategy]}
    found |= {name: said[name] for name in taken if name in said}
    for name, value in found.items():
        if type(value) is not int or value < LEAST[name]:
            shown = "none" if value is None else repr(value)
            raise ValueError(f"[sweep] {name}: found {shown}, expected a whole number of at least {LEAST[name]}")
    return found


def _goal(said: Mapping[str, Any]) -> tuple[str | None, bool]:
    goals = [name for name in GOALS if name in said]
    if len(goals) > 1:
        raise ValueError("[sweep] minimise, maximise: found both, expected one")
    if not goals:
        return None, True
    figure = said[goals[0]]
    if not isinstance(figure, str):
        raise ValueError(f"[sweep] {goals[0]}: found {figure!r}, expected the name of a figure")
    return figure, goals[0] == "minimise"


def _options(table: str, raw: dict[str, Any], asked: Asked, meant: Any) -> dict[str, Any]:
    """The options of a table, by the names that they have in Python."""
    found: dict[str, Any] = {}
    for said, value in raw.get(table, {}).items():
        try:
            name = asked.name(said)
            if name in found:
                raise ValueError("found twice, with dashes and without")
            found[name] = meant(value)
        except ValueError as error:
            raise ValueError(f"[{table}] {said}: {error}") from None
    return found


def _fixed(value: Any) -> Any:
    if not all(map(plain, value if isinstance(value, list) else [value])):
        raise ValueError(f"found {value!r}, expected a string, a number, true or false")
    return value


def _varied(value: Any, strategy: str) -> Choice | Range:
    if isinstance(value, dict) and strategy == "grid":
        raise ValueError("found a range, expected a list of values: a grid has no others")
    if isinstance(value, dict):
        return numbers(value)
    if isinstance(value, list):
        return choice(value)
    raise ValueError(
        f"found {value!r}, expected a list of values" + ("" if strategy == "grid" else " or {from = A, to = B}")
    )


def _allowed(table: str, options: Mapping[str, tuple[Any, ...]], asked: Asked) -> None:
    """ValueError for a value that the command line would refuse."""
    for name, values in options.items():
        for value in values:
            try:
                asked.read({name: value})
            except ValueError as error:
                raise ValueError(f"[{table}] {name}: {error}") from None
