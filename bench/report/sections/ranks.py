"""Ranks on MPI, measured on the cores of this machine."""

from collections.abc import Sequence

from bench.report.section import Cell, Record, Section, Step, Table

PLACE = 85
STEPS = [Step("ranks", ("ranks",), 40, 1, quick=("ranks",), needs=("mpi",))]
PARTS = {"tick": "whole tick", "compute": "compute, all at once"}


def section(records: Sequence[Record]) -> Section:
    """Shows the time of ticks."""
    ticks = [one for one in records if one["work"] in {f"ranks.{part}" for part in PARTS}]
    if not ticks:
        return Section("Ranks", [], gaps=["Ticks on ranks have not been measured."])
    return Section(
        "Ranks",
        ["One thread per rank, all ranks on this machine."],
        [],
        [_tick_table(ticks)],
        abstract=_abstract(ticks),
    )


def _models(ticks: Sequence[Record]) -> list[tuple[str, int]]:
    return list(dict.fromkeys((one["params"]["model"], one["params"]["ranks"]) for one in ticks))


def _seconds(ticks: Sequence[Record], model: str, ranks: int) -> dict[str, float]:
    found = [one for one in ticks if (one["params"]["model"], one["params"]["ranks"]) == (model, ranks)]
    return {one["work"].removeprefix("ranks."): one["seconds"] for one in found}


def _abstract(ticks: Sequence[Record]) -> str:
    """Returns the range of the speed-ups of two ranks."""
    pairs = [(_seconds(ticks, model, 1), _seconds(ticks, model, 2)) for model, ranks in _models(ticks) if ranks == 2]
    gains = [one["tick"] / two["tick"] for one, two in pairs if one]
    return f"Two MPI ranks are {min(gains):.2f} to {max(gains):.2f} times as fast as one." if gains else ""


def _tick_table(ticks: Sequence[Record]) -> Table:
    header = ["model", "ranks", *(f"{name}, ms" for name in PARTS.values())]
    rows: list[list[Cell]] = []
    for model, ranks in _models(ticks):
        took = _seconds(ticks, model, ranks)
        rows.append([model, ranks, *(1e3 * took[part] if part in took else None for part in PARTS)])
    return Table(
        "ranks-ticks",
        "Steps of Predictive Vision Models whose units are divided among ranks, and of a language model with data parallelism",
        header,
        rows,
        "python -m bench ranks",
    )
