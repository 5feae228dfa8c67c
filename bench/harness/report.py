"""Tables from .jsonl files, as in the README; ratios are computed here and not stored."""

import json
import statistics
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

from bench.harness.measure import CONFIDENCE, NOISY, of_ratio
from bench.harness.quiet import Load
from bench.report.section import drawn, lines_of
from bench.report.sections import quality, table7

Record = dict[str, Any]
RANGE = "± is half the distance from the slowest sample to the fastest, as a share of the median."
INTERVAL = f"Figures are medians of turns, in brackets with their {CONFIDENCE:.0%} intervals by bootstrap."
NOISE = f"(noisy): samples lie over {NOISY:.0%} of the median apart; other work on the machine may have decided."


def read(paths: Iterable[str]) -> list[Record]:
    """Returns the records of some .jsonl files; of equal measurements, the last. Those of `tests.smoke` measure nothing.

    Raises ValueError, with file and line, for a line that is not a record.
    """
    records = {}
    for path in paths:
        with open(path) as file:
            for number, line in enumerate(file, 1):
                try:
                    record = json.loads(line)
                    if record.get("bench") != "gpu_smoke":
                        records[identity(record)] = record
                except (ValueError, KeyError, TypeError, AttributeError) as error:
                    raise ValueError(f"{path}:{number}: not a record of a benchmark: {error!r}") from None
    return list(records.values())


def identity(record: Record) -> str:
    """Returns a key that records of the same measurement share."""
    same = [record["work"], record["params"], record["who"], _setting(record)]
    same += [record[name] for name in ("run", "data") if "run" in record]  # one of many trainings
    return json.dumps(same)


def tables(records: list[Record]) -> str:
    """Returns one Markdown table per work, with a row per figure of ours, and a column per peer with our ratio to it."""
    timed = [record for record in records if "value" in record and not table7.ours(record)]
    works = dict.fromkeys(record["work"] for record in timed)
    found = [_timed(work, [record for record in timed if record["work"] == work]) for work in works]
    for one in (*table7.section(records).tables, *quality.section(records).tables):
        found.append("\n".join([f"### {one.caption}", "", *lines_of(one)]))
    return "\n\n".join(found)


def ratio(ours: Record, peer: Record) -> float:
    """Returns our speedup over a peer; for bytes, the peer's bytes over ours."""
    return peer["value"] / ours["value"] if less_is_better(ours) else ours["value"] / peer["value"]


def less_is_better(record: Record) -> bool:
    """True if a smaller figure is better."""
    return record["unit"] in ("s", "seconds", "bytes")


def rivals(ours: Record, records: list[Record]) -> dict[str, Record]:
    """Returns the peers at the same work in the same setting, whose params agree with ours as far as given."""
    return {
        record["who"]: record
        for record in records
        if record["who"] != "ours"
        and record["work"] == ours["work"]
        and _setting(record) == _setting(ours)
        and record["params"].items() <= ours["params"].items()
    }


def _setting(record: Record) -> list:
    return [record["threads"], record["device"], record["env"].get("cpu")]


def _timed(work: str, records: list[Record]) -> str:
    mine = [record for record in records if record["who"] == "ours"]
    params = list(dict.fromkeys(name for record in mine for name in record["params"]))
    peers = list(dict.fromkeys(who for record in mine for who in rivals(record, records)))
    shares = any("bandwidth_share" in record for record in mine)
    place = "threads" if all(record["device"] == "cpu" for record in mine) else "on"
    rows = [[*params, place, "ours", *(["bandwidth"] if shares else []), *peers]]
    for record in mine:
        found = rivals(record, records)
        share = f"{record['bandwidth_share']:.0%}" if "bandwidth_share" in record else ""
        rows.append(
            [*(_plain(record["params"].get(name, "")) for name in params), _place(record, place)]
            + [f"**{_figure(record)}**", *([share] if shares else [])]
            + [
                f"{_figure(found[who])} ({_factor(ratio(record, found[who]))} x)" if who in found else ""
                for who in peers
            ]
        )
    shown = [record for ours in mine for record in (ours, *rivals(ours, records).values())]
    return "\n".join([f"### {work}", "", *drawn(rows), "", *notes(shown, mine)])


def notes(shown: list[Record], mine: list[Record]) -> list[str]:
    """Returns the notes of a table: the form of figures, doubtful figures, the environment of ours."""
    possible = {
        RANGE: not all(record.get("interval") for record in shown),
        INTERVAL: any(record.get("interval") for record in shown),
        NOISE: any(map(_noisy, shown)),
    }
    sources = dict.fromkeys(f"{_machine(record)}, commit {record['commit']}" for record in mine)
    loads = [Load(**record["load"]) for record in shown if record.get("load")]
    most = max(loads, key=lambda load: load.others + load.stolen, default=None)
    found = [note for note, holds in possible.items() if holds] + [f"Measured on {source}." for source in sources]
    if most and most.busy:
        found.append(f"Others took up to {most.others + most.stolen:.1f} of {most.cores} cores meanwhile.")
    return found


def _place(record: Record, header: str) -> str:
    """Returns the place of a measurement: the number of threads, under "on" also the name of a device."""
    threads = str(record["threads"])
    return threads if header == "threads" else f"{threads} threads" if record["device"] == "cpu" else record["device"]


def _machine(record: Record) -> str:
    processor = record["env"].get("cpu")
    return processor if record["device"] == "cpu" else f"{record['device']} beside {processor}"


def _figure(record: Record) -> str:
    """Returns the median with its unit; see INTERVAL and RANGE for additions, and NOISE for the mark."""
    beside = f"± {record['spread'] / 2:.0%}"
    if record.get("interval"):
        scale, _ = _prefix(record["value"])
        beside = "({:.3g} to {:.3g})".format(*(end / scale for end in record["interval"]))
    return f"{scaled(record['value'], record['unit'])} {beside}{' (noisy)' * _noisy(record)}"


def _factor(ratio: float) -> str:
    return f"{ratio:,.0f}" if ratio >= 100 else f"{ratio:.3g}"


def scaled(value: float, unit: str) -> str:
    """Formats three digits, with a prefix for thousands."""
    scale, prefix = _prefix(value)
    return f"{value / scale:.3g} {prefix}{unit}"


def _prefix(value: float) -> tuple[float, str]:
    return next((pair for pair in ((1e9, "G "), (1e6, "M "), (1e3, "k ")) if value >= pair[0]), (1, ""))


def _noisy(record: Record) -> bool:
    return record["spread"] > NOISY


def _plain(value: Any) -> str:
    return f"{value:,}" if isinstance(value, int) and not isinstance(value, bool) else str(value)


# Comparison of two files: the ratio of each figure, second over first, with an interval, and the regressions.
#
# A figure is worse if the interval of its ratio is entirely below 1 - tolerance. The tolerance covers differences between runs
# of the same code, which no interval of one run includes. Peers are shown too: if they changed, the machine did.

TOLERANCE = 0.05


class Change(NamedTuple):
    """One figure of both files. ratio: speedup, or reduction, of the second file; interval: of that, or None."""

    before: Record
    after: Record
    ratio: float
    interval: list[float] | None

    @property
    def ours(self) -> bool:
        """True unless it is a peer's."""
        who: str = self.after["who"]
        return who.startswith("ours")

    def verdict(self, tolerance: float) -> str:
        """Returns the verdict beyond the interval's doubt: "worse", "better", or "" if undecided."""
        if self.interval is None:
            return ""
        low, high = self.interval
        return "worse" if high < 1 - tolerance else "better" if low > 1 + tolerance else ""


def changes(before: Sequence[Record], after: Sequence[Record]) -> list[Change]:
    """Returns the figures of both files, measured on the same processor model, in the order of the second."""
    earlier = {identity(record): record for record in before if "samples" in record}
    pairs = ((earlier.get(identity(record)), record) for record in after if "samples" in record)
    return [_change(old, new) for old, new in pairs if old]


def comparison(found: Sequence[Change], tolerance: float) -> str:
    """Formats a Markdown table, one row per figure."""
    rows = [["work", "params", "who", "on", "before", "after", "times", ""]]
    for change in found:
        record, between = change.after, ""
        if change.interval:
            between = " ({:.3g} to {:.3g})".format(*change.interval)
        params = ", ".join(f"{name} {value}" for name, value in record["params"].items())
        figures = [scaled(_middle(one), one["unit"]) for one in (change.before, change.after)]
        on = f"{record['threads']} threads" if record["device"] == "cpu" else record["device"]
        verdict = change.verdict(tolerance)
        mark = f"**{verdict}**" if verdict == "worse" else verdict
        times = f"{change.ratio:.3g}{between}"
        rows.append([record["work"], params, record["who"], on, *figures, times, mark])
    return "\n".join(drawn(rows))


def summary(found: Sequence[Change], tolerance: float) -> str:
    """Summarises in one line: how many of ours got worse and better, and the median ratio of ours and of the peers."""
    ours, peers = ([change for change in found if change.ours is own] for own in (True, False))
    parts = [f"{sum(change.verdict(tolerance) == kind for change in ours)} {kind}" for kind in ("worse", "better")]
    sentence = f"of {len(ours)} figures of ours {' and '.join(parts)} by more than {tolerance:.0%}"
    for who, some in (("ours", ours), ("peers", peers)):
        if some:
            ratio = statistics.median(change.ratio for change in some)
            sentence += f"; {who} {ratio:.3g} times as good (median of {len(some)})"
    return sentence


def show_changes(before: Sequence[Record], after: Sequence[Record], tolerance: float) -> int:
    """Prints table and summary; returns the exit code: 1 if a figure of ours is worse.

    Raises ValueError if the two have no figure in common.
    """
    found = changes(before, after)
    if not found:
        raise ValueError("no figure is in both files: they are of other works, sizes, threads or processors")
    print(comparison(found, tolerance), summary(found, tolerance), sep="\n\n")
    return int(any(change.ours and change.verdict(tolerance) == "worse" for change in found))


def _change(old: Record, new: Record) -> Change:
    over, under = (old, new) if less_is_better(new) else (new, old)
    return Change(old, new, _middle(over) / _middle(under), of_ratio(over["samples"], under["samples"]))


def _middle(record: Record) -> float:
    """Returns the median of the samples: some benchmarks have another value, as the mean of all steps."""
    return statistics.median(record["samples"])
