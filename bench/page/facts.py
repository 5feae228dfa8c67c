"""What the head of the report says: machine, versions, commits, date; and how it is cited."""

from collections.abc import Sequence
from typing import Any, NamedTuple

from bench.runner import STEP

Record = dict[str, Any]
TITLE = "Trees, heads and brute force at the output layer: comparative benchmarks"
PLACES = ("cpu", "cores", "os")  # of an environment, what is no version


class Facts(NamedTuple):
    """Of the whole report.

    date        of the last step that was done, ISO, or ""
    machines    processors, with their cores, and devices
    versions    of what the figures depend on
    quick       small sizes, which show that it runs
    """

    title: str
    date: str
    machines: list[str]
    systems: list[str]
    versions: dict[str, str]
    commits: list[str]
    measured: int
    quick: bool


def of(records: Sequence[Record]) -> Facts:
    """What the records say."""
    steps = [one for one in records if one["work"] == STEP]
    environments = [one["env"] for one in records if one.get("env")]
    machines = [f"{env['cpu']}, {env['cores']} cores" for env in environments if env.get("cpu")]
    devices = [one["device"] for one in records if one.get("device", "cpu") != "cpu"]
    versions = {name: str(value) for env in environments for name, value in env.items() if name not in PLACES}
    return Facts(
        TITLE,
        max((one["ended"] for one in steps), default="")[:10],
        list(dict.fromkeys([*machines, *devices])),
        list(dict.fromkeys(env["os"] for env in environments if env.get("os"))),
        versions,
        list(dict.fromkeys(one["commit"] for one in records if one.get("commit"))),
        sum(one["work"] != STEP for one in records),
        any(one["quick"] for one in steps),
    )


def citation(facts: Facts) -> str:
    """A BibTeX entry of this report."""
    year, month = [*facts.date.split("-"), "", ""][:2]
    machines, commits = ("; ".join(all_of_them) for all_of_them in (facts.machines, facts.commits))
    fields = {
        "title": f"{{Hybrid-engine: {TITLE[0].lower()}{TITLE[1:]}}}",
        "author": "{The authors of hybrid-engine}",
        "year": year,
        "month": month,
        "version": f"commit {commits}",
        "note": f"Measured on {_escaped(machines)}{'; quick mode' if facts.quick else ''}",
        "howpublished": "hybrid-engine, python -m bench all",
    }
    lines = "".join(f"  {name:<12} = {{{text}}},\n" for name, text in fields.items() if text)
    return f"@misc{{hybrid-engine-benchmarks-{year or 'undated'},\n{lines}}}\n"


def _escaped(text: str) -> str:
    """For TeX."""
    return "".join(f"\\{sign}" if sign in "&%$#_{}" else sign for sign in text)
