"""Table 7 of Shi et al. 2016: seconds a mini-batch of its networks, ours and PyTorch's, beside what was published."""

from collections.abc import Sequence
from typing import Any

from bench.section import Cell, Figure, Section, Table
from bench.steps import Step
from bench.table7_table import OWN, beside, ours, told_2016

Record = dict[str, Any]
PLACE = 60
COMMAND = "python -m bench table7"
DENSE, OTHERS = ("FCN-S", "FCN-S with a tree", "FCN-R"), ("AlexNet-R", "ResNet-56", "LSTM", "AlexNet-S", "ResNet-50")


def _only(names: Sequence[str]) -> tuple[str, ...]:
    return ("table7", *(word for name in names for word in ("--only", name)))


STEPS = [
    Step("table7", _only(DENSE), 80, 6, quick=_only(DENSE), memory=4),
    Step("table7 of PyTorch's nets", _only(OTHERS), 30, 10, needs=("torch",), memory=6),
]
HEADER = ["who", "where", "threads", "seconds a mini-batch", "lowest of 95 %", "highest of 95 %", "source"]
Row = dict[str, Cell]


def section(records: Sequence[Record]) -> Section:
    """A figure and a table a network."""
    mine = [one for one in records if ours(one)]
    nets = list(dict.fromkeys((one["work"], one["params"]["net"]) for one in mine))
    source = told_2016()
    told: list[str] = []
    figures, tables = [], []
    for number, (work, net) in enumerate(nets, 1):
        of = [one for one in mine if (one["work"], one["params"]["net"]) == (work, net)]
        rows, name = _rows(of), f"table7-{number}"
        told.append(f"* {_fastest(net, of)}")
        params = of[0]["params"]
        size = f"{net}: {params['parameters']:,} parameters, batch {params['batch']:,}"
        tables.append(Table(name, f"{size}. Seconds a mini-batch", HEADER, _listed(rows), f'{COMMAND} --only "{net}"'))
        if len({row["threads"] for row in rows if row["threads"]}) > 1:
            figures.append(_figure(name, size, rows, _fastest(net, of)))
    answer = [_opening(source["source"], source["cpu"]), "\n".join(told)]
    gaps = [] if nets else ["No network of Table 7 has been measured."]
    if any(work == "table7.tree" for work, _ in nets):
        answer.append(f"Of {_quoted([net for work, net in nets if work == 'table7.tree'])}: {OWN[0].lower()}{OWN[1:]}")
    return Section("Table 7 of Shi et al. 2016, today", answer, figures, tables, gaps)


def _opening(source: str, processor: str) -> str:
    return (
        "The clock has one whole step: forward, loss, backward, update; data lie in memory, and ours has its engine copy them. "
        f"Published figures are from {source}; they were measured on an {processor} and GPUs of the time, with other "
        "clocks from tool to tool, so they say how far hardware and software have come, not which program is faster."
    )


def _fastest(net: str, records: Sequence[Record]) -> str:
    """Ours beside the fastest peer, each where it is at its best."""
    best: dict[str, Record] = {}
    for one in records:
        if one["who"] not in best or one["value"] > best[one["who"]]["value"]:
            best[one["who"]] = one
    told = [f"{who} takes {1 / one['value']:.3g} s at its best ({_where(one)})" for who, one in sorted(best.items())]
    said = f"**{net}**: {', '.join(told)}"
    rivals = [one["value"] for who, one in best.items() if who != "ours"]
    if "ours" in best and rivals:
        said += f"; ours is {best['ours']['value'] / max(rivals):.2f} times as fast"
    return f"{said}."


def _where(record: Record) -> str:
    count = record["threads"]
    return f"{count} thread{'s' * (count > 1)}" if record["device"] == "cpu" else record["device"]


def _rows(records: Sequence[Record]) -> list[Row]:
    """Ours, the peers', then the published ones."""
    rows: list[Row] = []
    for one in records:
        low, high = (1 / end for end in reversed(one["interval"])) if one.get("interval") else (None, None)
        threads = one["threads"] if one["device"] == "cpu" else None
        where = one["env"].get("cpu", "CPU") if one["device"] == "cpu" else one["device"]
        rows.append(_row(one["who"], where, threads, 1 / one["value"], low, high, "measured here"))
    told = told_2016()
    for who, found in beside(records[0]).items():
        for threads, seconds in zip(told["threads"], found["cpu"], strict=True):
            if seconds is not None:
                rows.append(_row(f"{who}, 2016", told["cpu"], threads, seconds, None, None, "published"))
        for gpu, seconds in zip(told["gpus"], found["gpu"], strict=True):
            if seconds is not None:
                rows.append(_row(f"{who}, 2016", gpu, None, seconds, None, None, "published"))
    return rows


def _row(who: str, where: str, threads: int | None, seconds: float, low: Any, high: Any, source: str) -> Row:
    return {
        "who": who,
        "where": where,
        "threads": threads,
        "seconds": seconds,
        "low": low,
        "high": high,
        "source": source,
    }


def _listed(rows: Sequence[Row]) -> list[list[Cell]]:
    return [list(row.values()) for row in rows]


def _figure(name: str, size: str, rows: Sequence[Row], told: str) -> Figure:
    """On a CPU, over threads: published ones dashed."""
    import altair as alt

    points = [row for row in rows if row["threads"]]
    threads = sorted({int(row["threads"] or 0) for row in points})
    base = alt.Chart(alt.Data(values=points)).encode(
        x=alt.X(
            "threads:Q",
            title="threads",
            scale=alt.Scale(type="log", base=2, nice=False, padding=12),
            axis=alt.Axis(values=threads),
        ),
        color=alt.Color("who:N", sort=None),
    )
    dashes = alt.Scale(domain=["measured here", "published"], range=[[1, 0], [5, 4]])
    sources = {row["source"] for row in points}
    legend = alt.Legend(symbolType="stroke", symbolSize=400) if len(sources) > 1 else None
    tooltip = [
        alt.Tooltip("who:N"),
        alt.Tooltip("where:N"),
        alt.Tooltip("threads:Q"),
        alt.Tooltip("seconds:Q", format=".3g"),
        alt.Tooltip("source:N"),
    ]
    seconds = alt.Y("seconds:Q", title="seconds a mini-batch", scale=alt.Scale(type="log", nice=False, padding=12))
    lines = base.mark_line().encode(y=seconds, strokeDash=alt.StrokeDash("source:N", scale=dashes, legend=legend))
    marks = base.mark_point().encode(y=seconds, tooltip=tooltip)
    bars = base.mark_rule().encode(y=alt.Y("low:Q"), y2="high:Q").transform_filter("datum.low != null")
    published = "; solid: measured here, dashed: published in 2016" if len(sources) > 1 else ""
    caption = f"{size}. Seconds a mini-batch on a CPU{published}"
    return Figure(name, caption, lines + bars + marks, _plain(told), name)


def _plain(text: str) -> str:
    return text.replace("**", "")


def _quoted(names: Sequence[str]) -> str:
    return ", ".join(f"**{name}**" for name in names)
