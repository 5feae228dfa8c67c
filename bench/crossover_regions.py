"""Who is the fastest at which size, as the cost models of the contenders say: regions, and where one overtakes another."""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np

from bench.cost_model import Model
from bench.crossover_costs import Size, amounts

STEPS = 4  # sizes a decade, of regions
FINE = 200  # of a crossover
PEER = "torch "  # what names of a peer's output layers begin with


class Cell(NamedTuple):
    """A size and who wins there.

    seconds  of its step
    second   the next one of another kind, and how many times as long it takes; None and infinity where there is none
    clear    whether that is more than the errors of both models
    """

    size: Size
    winner: str
    seconds: float
    second: str | None
    times: float
    clear: bool


def regions(models: Mapping[str, Model], work: str, sizes: Sequence[Size]) -> list[Cell]:
    """The winner of each size; models: by contender, all of one setting."""
    return [_cell(models, work, size) for size in sizes]


def _cell(models: Mapping[str, Model], work: str, size: Size) -> Cell:
    seconds = {name: model.seconds(amounts(name, work, size)) for name, model in models.items()}
    first, *others = sorted(seconds, key=lambda name: seconds[name])
    others = [name for name in others if kind(name) != kind(first)]
    if not others:
        return Cell(size, first, seconds[first], None, float("inf"), True)
    times = seconds[others[0]] / seconds[first]
    wrong = (models[first].error or 0.0) + (models[others[0]].error or 0.0)
    return Cell(size, first, seconds[first], others[0], times, times > 1 + wrong)


def kind(contender: str) -> str:
    """What it is, whoever made it and however it is run: "torch full" is full, and "tree in batches" a tree."""
    return contender.removeprefix(PEER).split()[0]


def classes(first: int, last: int, a_decade: int = STEPS) -> list[int]:
    """Numbers of classes that stand evenly on a logarithmic axis, both ends too."""
    count = max(2, round(a_decade * float(np.log10(last / first))) + 1)
    return [round(one) for one in np.geomspace(first, last, count)]


def crossover(models: Mapping[str, Model], work: str, slow: str, fast: str, size: Size, last: int) -> int | None:
    """The least number of classes from which on, up to `last`, `fast` takes less than `slow`; None where it does not at last.

    size.classes is where the search begins: a result equal to it says that there is no crossover within.
    """
    found = None
    for count in reversed(classes(size.classes, last, FINE)):
        at = size._replace(classes=count)
        if not models[fast].seconds(amounts(fast, work, at)) < models[slow].seconds(amounts(slow, work, at)):
            break
        found = count
    return found
