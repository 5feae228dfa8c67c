"""Ranks on MPI: what is measured on this machine's cores, and, marked apart, what a model predicts of more of them."""

from collections.abc import Sequence
from typing import Any

from bench.section import Cell, Figure, Section, Table
from bench.steps import Step

Record = dict[str, Any]
PLACE = 85
STEPS = [
    Step("ranks", ("ranks",), 40, 1, quick=("ranks",), needs=("mpi",)),
    Step("scale", ("scale",), 35, 5, quick=("scale",), needs=("mpi",)),
]
PARTS = {"tick": "whole tick", "compute": "compute, all at once", "alone": "one rank's share alone"}
MEASURED, PREDICTED = "measured", "predicted"


def section(records: Sequence[Record]) -> Section:
    """Ticks, then efficiency over ranks."""
    ticks = [one for one in records if one["work"] in {f"ranks.{part}" for part in PARTS}]
    checked, predicted = (
        [one for one in records if one["work"] == f"scale.{kind}"] for kind in ("checked", "predicted")
    )
    answer: list[str] = []
    figures, tables, gaps = [], [], []
    if ticks:
        answer += _ticks_told(ticks)
        tables.append(_tick_table(ticks))
    else:
        gaps.append("Ticks on ranks have not been measured.")
    if checked:
        worst = max(abs(one["simulated"] / one["measured"] - 1) for one in checked)
        answer.append(
            f"A simulation of what messages and compute take here predicts the ticks that were measured on up to "
            f"{max(one['params']['ranks'] for one in checked)} ranks with errors of at most {worst:.1%}. Figures of more ranks "
            "are **predicted, not measured**; two of the kinds of links are assumed."
        )
        tables.append(_checked_table(checked))
    if predicted:
        points = _efficiencies(checked, predicted)
        figures += [_efficiency(number, links, points) for number, links in enumerate(_links(predicted), 1)]
        tables.append(_predicted_table(predicted))
    else:
        gaps.append("More ranks than this machine has cores have not been predicted.")
    return Section("Ranks: measured and predicted", answer, figures, tables, gaps)


def _models(ticks: Sequence[Record]) -> list[tuple[str, int]]:
    return list(dict.fromkeys((one["params"]["model"], one["params"]["ranks"]) for one in ticks))


def _seconds(ticks: Sequence[Record], model: str, ranks: int) -> dict[str, float]:
    found = [one for one in ticks if (one["params"]["model"], one["params"]["ranks"]) == (model, ranks)]
    return {one["work"].removeprefix("ranks."): one["seconds"] for one in found}


def _ticks_told(ticks: Sequence[Record]) -> list[str]:
    told = []
    for model, ranks in _models(ticks):
        took = _seconds(ticks, model, ranks)
        if {"tick", "compute"} <= took.keys():
            over = took["tick"] / took["compute"]
            told.append(
                f"**{model}** on {ranks} ranks: a tick takes {1e3 * took['tick']:.3g} ms, {over:.2f} times its compute."
            )
    return told


def _tick_table(ticks: Sequence[Record]) -> Table:
    header = ["model", "ranks", *(f"{name}, ms" for name in PARTS.values())]
    rows: list[list[Cell]] = []
    for model, ranks in _models(ticks):
        took = _seconds(ticks, model, ranks)
        rows.append([model, ranks, *(1e3 * took[part] if part in took else None for part in PARTS)])
    return Table(
        "ranks-ticks",
        "Ticks of a Predictive Vision Model whose units ranks share (measured)",
        header,
        rows,
        "python -m bench ranks",
    )


def _checked_table(checked: Sequence[Record]) -> Table:
    header = ["model", "ranks", "measured, ms", "simulated, ms", "error, %"]
    rows: list[list[Cell]] = [
        [
            *one["params"].values(),
            1e3 * one["measured"],
            1e3 * one["simulated"],
            100 * (one["simulated"] / one["measured"] - 1),
        ]
        for one in checked
    ]
    return Table("ranks-checked", "The simulation beside what was measured", header, rows, "python -m bench scale")


def _links(predicted: Sequence[Record]) -> list[str]:
    return list(dict.fromkeys(one["params"]["links"] for one in predicted))


def _efficiencies(checked: Sequence[Record], predicted: Sequence[Record]) -> list[dict[str, Any]]:
    """Points: of what is predicted by links; of what is measured, over its own tick of one rank, for no links in particular."""
    alone = {one["params"]["model"]: one["measured"] for one in checked if one["params"]["ranks"] == 1}
    points = []
    for one in checked:
        model, ranks = one["params"]["model"], one["params"]["ranks"]
        if model in alone:
            share = alone[model] / one["measured"] / ranks
            points.append({"links": "", "kind": MEASURED, "model": model, "ranks": ranks, "efficiency": share})
    for one in predicted:
        points.append({**one["params"], "kind": PREDICTED, "efficiency": one["efficiency"]})
    return points


def _efficiency(number: int, links: str, points: Sequence[dict[str, Any]]) -> Figure:
    """Dashed where it is predicted; what is measured here stands beside links as they are here."""
    import altair as alt

    rows = [one for one in points if one["links"] == links or (number == 1 and one["kind"] == MEASURED)]
    dashes = alt.Scale(domain=[MEASURED, PREDICTED], range=[[1, 0], [5, 4]])
    chart = (
        alt.Chart(alt.Data(values=rows), height=280)
        .mark_line(point=True)
        .encode(
            x=alt.X(
                "ranks:Q",
                title="ranks",
                scale=alt.Scale(type="log", base=2, nice=False, padding=12),
                axis=alt.Axis(values=sorted({row["ranks"] for row in rows})),
            ),
            y=alt.Y(
                "efficiency:Q",
                title="efficiency: speedup a rank",
                axis=alt.Axis(format="%"),
                scale=alt.Scale(zero=True),
            ),
            color=alt.Color("model:N", sort=None),
            strokeDash=alt.StrokeDash("kind:N", scale=dashes, legend=alt.Legend(symbolType="stroke", symbolSize=400)),
            tooltip=["model:N", "ranks:Q", alt.Tooltip("efficiency:Q", format=".0%"), "kind:N"],
        )
    )
    most = max(row["ranks"] for row in rows)
    told = f"Predicted on {most:,} ranks, {links}: " + ", ".join(
        f"{row['model']} has an efficiency of {row['efficiency']:.0%}" for row in rows if row["ranks"] == most
    )
    caption = f"Efficiency over ranks, {links}: dashed lines are **predicted, not measured**"
    return Figure(f"ranks-efficiency-{number}", caption, chart, f"{told}.", "ranks-predicted")


def _predicted_table(predicted: Sequence[Record]) -> Table:
    header = [
        "links",
        "model",
        "ranks",
        "predicted tick, ms",
        "predicted speedup",
        "predicted efficiency",
        "bounded by (predicted)",
    ]
    rows: list[list[Cell]] = [
        [
            *(one["params"][name] for name in header[:3]),
            1e3 * one["seconds"],
            *(one[name] for name in ("speedup", "efficiency", "bound")),
        ]
        for one in predicted
    ]
    return Table("ranks-predicted", "Predicted by a simulation, not measured", header, rows, "python -m bench scale")
