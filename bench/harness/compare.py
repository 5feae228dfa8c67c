"""Two .jsonl files, figure by figure: how many times as good the second is, with an interval, and what got worse.

A figure is worse where the interval of its ratio lies wholly below 1 - tolerance. The tolerance is for what differs between
two runs of the same code, which no interval of one run knows. Peers are shown beside ours: where they moved, the machine did.
"""

import statistics
from collections.abc import Sequence
from typing import NamedTuple

from bench.harness import measure, report
from bench.harness.report import Record

TOLERANCE = 0.05


class Change(NamedTuple):
    """One figure of both files. ratio: how many times as fast, or as small, it is in the second; interval: of that, or None."""

    before: Record
    after: Record
    ratio: float
    interval: list[float] | None

    @property
    def ours(self) -> bool:
        """Whether it is not a peer's."""
        who: str = self.after["who"]
        return who.startswith("ours")

    def verdict(self, tolerance: float) -> str:
        """What the interval leaves no doubt of: "worse", "better", or "" where it leaves one."""
        if self.interval is None:
            return ""
        low, high = self.interval
        return "worse" if high < 1 - tolerance else "better" if low > 1 + tolerance else ""


def changes(before: Sequence[Record], after: Sequence[Record]) -> list[Change]:
    """The figures that both have, measured on a processor of the same name, in the order of the second."""
    earlier = {report.identity(record): record for record in before if "samples" in record}
    pairs = ((earlier.get(report.identity(record)), record) for record in after if "samples" in record)
    return [_change(old, new) for old, new in pairs if old]


def table(found: Sequence[Change], tolerance: float) -> str:
    """As Markdown, a figure a row."""
    rows = ["| work | params | who | on | before | after | times | |", "|---|---|---|---|---|---|---|---|"]
    for change in found:
        record, between = change.after, ""
        if change.interval:
            between = " ({:.3g} to {:.3g})".format(*change.interval)
        params = ", ".join(f"{name} {value}" for name, value in record["params"].items())
        figures = " | ".join(report.scaled(_median(one), one["unit"]) for one in (change.before, change.after))
        on = f"{record['threads']} threads" if record["device"] == "cpu" else record["device"]
        verdict = change.verdict(tolerance)
        mark = f"**{verdict}**" if verdict == "worse" else verdict
        rows.append(
            f"| {record['work']} | {params} | {record['who']} | {on} | {figures} | {change.ratio:.3g}{between} | {mark} |"
        )
    return "\n".join(rows)


def summary(found: Sequence[Change], tolerance: float) -> str:
    """One line: how many of ours got worse and better, and the middle ratio of ours and of the peers."""
    ours, peers = ([change for change in found if change.ours is own] for own in (True, False))
    told = [f"{sum(change.verdict(tolerance) == kind for change in ours)} {kind}" for kind in ("worse", "better")]
    said = f"of {len(ours)} figures of ours {' and '.join(told)} by more than {tolerance:.0%}"
    for who, some in (("ours", ours), ("peers", peers)):
        if some:
            said += f"; {who} {statistics.median(change.ratio for change in some):.3g} times as good (median of {len(some)})"
    return said


def show(before: Sequence[Record], after: Sequence[Record], tolerance: float) -> int:
    """Print table and summary; returns the exit code: 1 where a figure of ours is worse.

    Raises ValueError where the two have no figure in common.
    """
    found = changes(before, after)
    if not found:
        raise ValueError("no figure is in both files: they are of other works, sizes, threads or processors")
    print(table(found, tolerance), summary(found, tolerance), sep="\n\n")
    return int(any(change.ours and change.verdict(tolerance) == "worse" for change in found))


def _change(old: Record, new: Record) -> Change:
    over, under = (old, new) if report.less_is_better(new) else (new, old)
    return Change(old, new, _median(over) / _median(under), measure.of_ratio(over["samples"], under["samples"]))


def _median(record: Record) -> float:
    """Of the samples: some benchmarks give another figure as their value, as the mean of all steps."""
    return statistics.median(record["samples"])
