"""The table of `python -m bench table7`: seconds a mini-batch, by threads and devices, with the published figures below."""

import json
from pathlib import Path
from typing import Any

from bench.measure import NOISY

Record = dict[str, Any]
PUBLISHED = Path(__file__).with_name("table7_published.json")
CLOCK = (
    "Seconds a mini-batch, in brackets the 95 % interval of the median by bootstrap. The clock has one whole step: forward, "
    "loss, backward, update; data lie in memory, and ours has them copied by its engine."
)
OWN = "The output layer is a tree of its classes: another model than the published one, and beside no figure of it."


def ours(record: Record) -> bool:
    """Whether a record is of `python -m bench table7`."""
    return str(record["work"]).startswith("table7.")


def tables(records: list[Record]) -> str:
    """One Markdown table a network, in the order of the records."""
    nets = dict.fromkeys((record["work"], record["params"]["net"]) for record in records)
    return "\n\n".join(
        _table([record for record in records if (record["work"], record["params"]["net"]) == net]) for net in nets
    )


def told_2016() -> Record:
    """The published figures, with where they are from: bench/table7_published.json."""
    found: Record = json.loads(PUBLISHED.read_text())
    return found


def beside(record: Record) -> dict[str, Any]:
    """The published figures of the network of a record, by tool; none for another model, or for small sizes."""
    params = record["params"]
    same = record["work"] == "table7.step" and params["parameters"] == _parameters(params["net"])
    found: dict[str, Any] = told_2016()["nets"].get(params["net"], {}) if same else {}
    return found


def _table(records: list[Record]) -> str:
    """Rows: who; columns: threads, then devices."""
    first, told, published = records[0], told_2016(), beside(records[0])
    threads = {record["threads"] for record in records if record["device"] == "cpu"}
    columns: list[Any] = sorted(threads | set(told["threads"] if published else ()))
    columns += dict.fromkeys(record["device"] for record in records if record["device"] != "cpu")
    columns += told["gpus"] if published else []
    cells = {(record["who"], _column(record)): _seconds(record) for record in records}
    for who, figures in published.items():
        places = zip([*told["threads"], *told["gpus"]], [*figures["cpu"], *figures["gpu"]], strict=True)
        cells |= {(f"{who}, 2016", column): f"{seconds:.3f}" for column, seconds in places if seconds is not None}
    rows = [
        ["", *(f"{column} thread{'s' * (column > 1)}" if isinstance(column, int) else column for column in columns)]
    ]
    rows.append(["---"] * len(rows[0]))
    rows += [
        [who, *(cells.get((who, column), "") for column in columns)] for who in dict.fromkeys(who for who, _ in cells)
    ]
    lines = [f"| {' | '.join(row)} |" for row in rows]
    params = first["params"]
    title = f"### {params['net']}: {params['parameters']:,} parameters, batch {params['batch']:,}"
    return "\n".join([title, "", *lines, "", *_notes(records, told["source"] if published else None, told["cpu"])])


def _notes(records: list[Record], source: str | None, processor: str) -> list[str]:
    first = records[0]
    found = [CLOCK, f"Measured on {first['env'].get('cpu')}, commit {first['commit']}."]
    if first["work"] == "table7.tree":
        found.append(OWN)
    if source:
        found.append(
            f"2016, on an {processor} and its GPUs: {source}; what their clocks had within differs from tool to tool."
        )
    if any(record["spread"] > NOISY for record in records):
        found.append(f"(noisy): samples lie over {NOISY:.0%} of the median apart.")
    return found


def _parameters(net: str) -> int | None:
    """Of the published network: figures of small ones stand beside nothing."""
    from bench.table7_rows import FULL

    return next((row.parameters for row in FULL if row.name == net), None)


def _column(record: Record) -> Any:
    return record["threads"] if record["device"] == "cpu" else record["device"]


def _seconds(record: Record) -> str:
    """The median and its interval: the record has mini-batches a second."""
    found = f"{1 / record['value']:.3g}"
    if record.get("interval"):
        low, high = (1 / end for end in reversed(record["interval"]))
        found += f" ({low:.3g} to {high:.3g})"
    bold = f"**{found}**" if record["who"] == "ours" else found
    return bold + " (noisy)" * (record["spread"] > NOISY)
