"""The records of `bench crossover` as points, and the cost models of all contenders, by setting."""

from collections.abc import Iterable
from typing import Any, NamedTuple

from bench.cost_model import Model, fit
from bench.crossover_costs import Size, amounts

Record = dict[str, Any]


class Setting(NamedTuple):
    """What points must share to be of one model: "output" or "step", the device, threads of the CPU."""

    work: str
    device: str
    threads: int


class Measured(NamedTuple):
    """A contender's step at a size; low, high: seconds at the ends of the interval, None where there is none."""

    contender: str
    size: Size
    seconds: float
    low: float | None
    high: float | None


def measured(records: Iterable[Record]) -> dict[Setting, list[Measured]]:
    """All points of the records that are of the crossover, by setting; those with most threads of a work first."""
    found: dict[Setting, list[Measured]] = {}
    for one in records:
        if one["work"] in ("crossover.output", "crossover.step"):
            setting = Setting(one["work"].split(".")[1], one["device"], one["threads"])
            found.setdefault(setting, []).append(_measured(one))
    return dict(sorted(found.items(), key=lambda item: (item[0].work, item[0].device != "cpu", -item[0].threads)))


def _measured(record: Record) -> Measured:
    """Of examples a second, seconds of a batch."""
    size = Size(*(record["params"][name] for name in Size._fields))
    low, high = record.get("interval") or (None, None)
    ends = (size.batch / high, size.batch / low) if low and high else (None, None)
    return Measured(record["contender"], size, size.batch / record["value"], *ends)


def models(work: str, points: Iterable[Measured]) -> dict[str, Model]:
    """A model a contender, of points of one setting."""
    by: dict[str, list[Measured]] = {}
    for one in points:
        by.setdefault(one.contender, []).append(one)
    return {name: fit([(amounts(name, work, one.size), one.seconds) for one in found]) for name, found in by.items()}
