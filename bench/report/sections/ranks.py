"""Ranks on MPI, measured on the cores of this machine."""

from collections.abc import Sequence

from bench.report.section import Cell, Record, Section, Step, Table

PLACE = 85
STEPS = [Step("ranks", ("ranks",), 40, 1, quick=("ranks",), needs=("mpi",))]
PARTS = {"tick": "whole tick", "compute": "compute, all at once"}


def section(records: Sequence[Record]) -> Section:
    """Shows the time of ticks."""
    ticks = [one for one in records if one["work"] in {f"ranks.{part}" for part in PARTS}]
    answer: list[str] = []
    tables, gaps = [], []
    if ticks:
        answer += _tick_summaries(ticks)
        tables.append(_tick_table(ticks))
    else:
        gaps.append("Ticks on ranks have not been measured.")
    return Section("Ranks", answer, [], tables, gaps)


def _models(ticks: Sequence[Record]) -> list[tuple[str, int]]:
    return list(dict.fromkeys((one["params"]["model"], one["params"]["ranks"]) for one in ticks))


def _seconds(ticks: Sequence[Record], model: str, ranks: int) -> dict[str, float]:
    found = [one for one in ticks if (one["params"]["model"], one["params"]["ranks"]) == (model, ranks)]
    return {one["work"].removeprefix("ranks."): one["seconds"] for one in found}


def _tick_summaries(ticks: Sequence[Record]) -> list[str]:
    sentences = []
    for model, ranks in _models(ticks):
        took = _seconds(ticks, model, ranks)
        if ranks == 1:
            continue
        parts = [f"**{model}** on {ranks} ranks: a tick takes {1e3 * took['tick']:.3g} ms"]
        if "compute" in took:
            parts.append(f"{took['tick'] / took['compute']:.2f} times its compute")
        alone = _seconds(ticks, model, 1)
        parts += [f"{alone['tick'] / took['tick']:.2f} times as fast as one rank"] if alone else []
        sentences.append(f"{', '.join(parts)}.")
    return sentences


def _tick_table(ticks: Sequence[Record]) -> Table:
    header = ["model", "ranks", *(f"{name}, ms" for name in PARTS.values())]
    rows: list[list[Cell]] = []
    for model, ranks in _models(ticks):
        took = _seconds(ticks, model, ranks)
        rows.append([model, ranks, *(1e3 * took[part] if part in took else None for part in PARTS)])
    return Table(
        "ranks-ticks",
        "Ticks of Predictive Vision Models whose units ranks share, and of a language model whose trunk they share",
        header,
        rows,
        "python -m bench ranks",
    )
