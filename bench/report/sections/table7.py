"""Table 7 of Shi et al. 2016: seconds per mini-batch of its networks, ours, PyTorch's and the published ones."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from bench.report.section import Cell, Figure, Record, Section, Step, Table

PLACE = 60
PUBLISHED = Path(__file__).with_suffix(".json")
OWN = "The output layer is a tree of its classes: another model than the published one, and beside no figure of it."
COMMAND = "python -m bench table7"
DENSE, OTHERS = ("FCN-S", "FCN-S with a tree", "FCN-R"), ("AlexNet-R", "ResNet-56", "LSTM", "AlexNet-S", "ResNet-50")


def _only(names: Sequence[str]) -> tuple[str, ...]:
    return ("table7", *(word for name in names for word in ("--only", name)))


STEPS = [
    Step("table7", _only(DENSE), 80, 6, quick=_only(DENSE), memory=4),
    Step("table7 of PyTorch's nets", _only(OTHERS), 30, 10, needs=("torch",), memory=6),
]
HEADER = ["who", "where", "threads", "seconds a mini-batch", "lowest of 95 %", "highest of 95 %", "source"]
OPENING = (
    "The clock has one whole step: forward, loss, backward, update; data lie in memory, and ours has its engine copy them. "
    "Published figures are from {source}; they were measured on an {cpu} and GPUs of the time, with other "
    "clocks from tool to tool, so they say how far hardware and software have come, not which program is faster."
)
COLUMNS = ("who", "where", "threads", "seconds", "low", "high", "source")
Row = dict[str, Cell]


def section(records: Sequence[Record]) -> Section:
    """Shows a figure and a table per network."""
    mine = [one for one in records if ours(one)]
    nets = list(dict.fromkeys((one["work"], one["params"]["net"]) for one in mine))
    source = told_2016()
    sentences: list[str] = []
    figures, tables = [], []
    for number, (work, net) in enumerate(nets, 1):
        of = [one for one in mine if (one["work"], one["params"]["net"]) == (work, net)]
        rows, name = _rows(of), f"table7-{number}"
        sentences.append(f"* {_fastest(net, of)}")
        params = of[0]["params"]
        size = f"{net}: {params['parameters']:,} parameters, batch {params['batch']:,}"
        cells = [list(row.values()) for row in rows]
        tables.append(Table(name, f"{size}. Seconds a mini-batch", HEADER, cells, f'{COMMAND} --only "{net}"'))
        if len({row["threads"] for row in rows if row["threads"]}) > 1:
            figures.append(_figure(name, size, rows, _fastest(net, of)))
    answer = [OPENING.format(**source), "\n".join(sentences)]
    gaps = [] if nets else ["No network of Table 7 has been measured."]
    if trees := [f"**{net}**" for work, net in nets if work == "table7.tree"]:
        answer.append(f"Of {', '.join(trees)}: {OWN[0].lower()}{OWN[1:]}")
    return Section("Table 7 of Shi et al. 2016, today", answer, figures, tables, gaps)


def ours(record: Record) -> bool:
    """True if a record is of `python -m bench table7`."""
    return str(record["work"]).startswith("table7.")


def told_2016() -> Record:
    """Returns the published figures, with their sources: table7.json."""
    found: Record = json.loads(PUBLISHED.read_text())
    return found


def beside(record: Record) -> dict[str, Any]:
    """Returns the published figures of a record's network, by tool; none for another model, or for small sizes."""
    params, published = record["params"], told_2016()
    same = record["work"] == "table7.step" and params["parameters"] == published["parameters"].get(params["net"])
    found: dict[str, Any] = published["nets"][params["net"]] if same else {}
    return found


def _fastest(net: str, records: Sequence[Record]) -> str:
    """Compares ours with the fastest peer, each at its best."""
    best: dict[str, Record] = {}
    for one in records:
        if one["who"] not in best or one["value"] > best[one["who"]]["value"]:
            best[one["who"]] = one
    times = [f"{who} takes {1 / one['value']:.3g} s at its best ({_where(one)})" for who, one in sorted(best.items())]
    sentence = f"**{net}**: {', '.join(times)}"
    rivals = [one["value"] for who, one in best.items() if who != "ours"]
    if "ours" in best and rivals:
        sentence += f"; ours is {best['ours']['value'] / max(rivals):.2f} times as fast"
    return f"{sentence}."


def _where(record: Record) -> str:
    count = record["threads"]
    return f"{count} thread{'s' * (count > 1)}" if record["device"] == "cpu" else record["device"]


def _rows(records: Sequence[Record]) -> list[Row]:
    """Returns our rows, the peers', then the published ones."""
    found: list[list[Cell]] = []
    for one in records:
        low, high = (1 / end for end in reversed(one["interval"])) if one.get("interval") else (None, None)
        on_cpu = one["device"] == "cpu"
        where = one["env"].get("cpu", "CPU") if on_cpu else one["device"]
        found.append(
            [one["who"], where, one["threads"] if on_cpu else None, 1 / one["value"], low, high, "measured here"]
        )
    published = told_2016()
    for who, given in beside(records[0]).items():
        places = [(published["cpu"], threads) for threads in published["threads"]] + [
            (gpu, None) for gpu in published["gpus"]
        ]
        for place, seconds in zip(places, given["cpu"] + given["gpu"], strict=True):
            if seconds is not None:
                found.append([f"{who}, 2016", *place, seconds, None, None, "published"])
    return [dict(zip(COLUMNS, row, strict=True)) for row in found]


def _figure(name: str, size: str, rows: Sequence[Row], alt: str) -> Figure:
    """Plots the CPU over threads, with the published figures."""
    points = [
        {"who": row["who"], "x": row["threads"], "y": row["seconds"], "low": row["low"], "high": row["high"]}
        for row in rows
        if row["threads"]
    ]
    caption = f"{size}. Seconds a mini-batch on a CPU; those of 2016 are published"
    return Figure(name, caption, alt.replace("**", ""), name, points, "threads", "seconds a mini-batch")
