"""Table 7 of Shi et al. 2016: seconds per mini-batch of its networks, ours, PyTorch's and the published ones."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from bench.report.section import Cell, Figure, Record, Section, Step, Table

PLACE = 60
PUBLISHED = Path(__file__).with_suffix(".json")
OWN = "the output layer is a tree, so this is not the published model"
COMMAND = "python -m bench table7"
DENSE, OTHERS = ("FCN-S", "FCN-S with a tree", "FCN-R"), ("AlexNet-R", "ResNet-56", "LSTM", "AlexNet-S", "ResNet-50")


def _only(names: Sequence[str]) -> tuple[str, ...]:
    return ("table7", *(word for name in names for word in ("--only", name)))


STEPS = [
    Step("table7", _only(DENSE), 80, 6, quick=_only(DENSE), memory=4),
    Step("table7 of PyTorch's nets", _only(OTHERS), 30, 10, needs=("torch",), memory=6),
]
OPENING = (
    "The clock has one whole step: forward, loss, backward, update. Data are in memory; our engine copies them. "
    "Published figures are from {source}, measured on an {cpu} and GPUs of the time. Tools of that paper were timed in "
    "different ways, so its figures show the progress of hardware and software, not which program is faster."
)
SIZE = ["net", "parameters", "batch"]
HEADER = [*SIZE, "who", "where", "threads", "seconds", "lowest of 95 %", "highest of 95 %", "source"]


def section(records: Sequence[Record]) -> Section:
    """Shows a row per network, and a figure per network that has published figures."""
    mine, source = [one for one in records if ours(one)], told_2016()
    nets = list(dict.fromkeys((one["work"], one["params"]["net"]) for one in mine))
    opening, title = OPENING.format(**source), "Table 7 of Shi et al. 2016, today"
    if not nets:
        return Section(title, [opening], gaps=["No network of Table 7 has been measured."])
    found = [[one for one in mine if (one["work"], one["params"]["net"]) == net] for net in nets]
    short, rows = _short(found), [_rows(some) for some in found]
    caption = "Every measured and published figure, seconds a mini-batch"
    tables = [short, Table("table7-all", caption, HEADER, [row for some in rows for row in some], COMMAND)]
    figures = [_figure(own) for some, own in zip(found, rows, strict=True) if beside(some[0])]
    abstract = ""
    if gains := [row[-1] for row in short.rows if isinstance(row[-1], float)]:
        abstract = (
            f"Networks of Shi et al. (2016) train {min(gains):.2f} to {max(gains):.2f} times as fast as in PyTorch."
        )
    return Section(title, [opening], figures, tables, abstract=abstract)


def _short(found: Sequence[Sequence[Record]]) -> Table:
    """Tabulates the seconds of each contender at its best number of threads, and our speed-up."""
    names = list(dict.fromkeys(one["who"] for some in found for one in some))
    rows: list[list[Cell]] = []
    for some in found:
        best = {who: max((one["value"] for one in some if one["who"] == who), default=None) for who in names}
        rivals = [value for who, value in best.items() if who != "ours" and value]
        gain = best["ours"] / max(rivals) if rivals and best.get("ours") else None
        seconds = [1 / value if value else None for value in best.values()]
        rows.append([*(some[0]["params"][name] for name in SIZE), *seconds, gain])
    caption = f"Seconds a mini-batch, at the best number of threads. FCN-S with a tree: {OWN}"
    return Table("table7", caption, [*SIZE, *names, "speed-up"], rows, COMMAND)


def ours(record: Record) -> bool:
    """True if a record is of `python -m bench table7`."""
    return str(record["work"]).startswith("table7.")


def told_2016() -> Record:
    """Returns the published figures, with their sources: table7.json."""
    return json.loads(PUBLISHED.read_text())


def beside(record: Record) -> dict[str, Any]:
    """Returns the published figures of a record's network, by tool; none for another model, or for small sizes."""
    params, published = record["params"], told_2016()
    same = record["work"] == "table7.step" and params["parameters"] == published["parameters"].get(params["net"])
    return published["nets"][params["net"]] if same else {}


def _rows(records: Sequence[Record]) -> list[list[Cell]]:
    """Returns our rows, the peers', then the published ones, of one network."""
    net = [records[0]["params"][name] for name in SIZE]
    found: list[list[Cell]] = []
    for one in records:
        low, high = (1 / end for end in reversed(one["interval"])) if one.get("interval") else (None, None)
        on_cpu = one["device"] == "cpu"
        where, threads = (one["env"].get("cpu", "CPU"), one["threads"]) if on_cpu else (one["device"], None)
        found.append([*net, one["who"], where, threads, 1 / one["value"], low, high, "measured here"])
    published = told_2016()
    for who, given in beside(records[0]).items():
        places = [(published["cpu"], threads) for threads in published["threads"]] + [
            (gpu, None) for gpu in published["gpus"]
        ]
        for place, seconds in zip(places, given["cpu"] + given["gpu"], strict=True):
            if seconds is not None:
                found.append([*net, f"{who}, 2016", *place, seconds, None, None, "published"])
    return found


def _figure(own: Sequence[Sequence[Cell]]) -> Figure:
    """Plots the rows of one network on a CPU over threads, with the published figures."""
    rows = [dict(zip(HEADER, row, strict=True)) for row in own]
    points: list[dict[str, Any]] = [
        {"who": row["who"], "x": row["threads"], "y": row["seconds"]}
        | {"low": row["lowest of 95 %"], "high": row["highest of 95 %"]}
        for row in rows
        if row["threads"]
    ]
    net = str(rows[0]["net"])
    caption = f"{net}: seconds a mini-batch on a CPU; those of 2016 are published"
    return Figure(f"table7-{net.lower()}", caption, "table7-all", points, "threads", "seconds a mini-batch")
