"""Tables of what `python -m bench quality` recorded: figures at equal epochs, within equal seconds, and what each costs."""

import statistics
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

Record = dict[str, Any]
LATE = 1.05  # times the seconds of a column, by which a training may end later


class Length(NamedTuple):
    """Trainings of one contender of one length, a record a seed.

    kind, amount  ("epochs", 2) or ("seconds", 60): what was asked for
    """

    kind: str
    amount: float
    records: list[Record]

    def values(self, part: str, name: str) -> list[float]:
        """A figure of "valid" or "test", a seed."""
        return [one[part][name] for one in self.records if name in one[part]]

    @property
    def seconds(self) -> float:
        """Of training, the mean over seeds."""
        return statistics.mean(one["seconds"] for one in self.records)


class Row(NamedTuple):
    """A contender with what it was trained with, by lengths; figures: names and, of the first, whether less is better."""

    who: str
    settings: dict[str, Any]
    lengths: list[Length]
    lowest: bool

    def at(self, kind: str, amount: float) -> Length | None:
        """The trainings of a length; None where there are none."""
        return next((one for one in self.lengths if (one.kind, one.amount) == (kind, amount)), None)

    def within(self, seconds: float, name: str) -> Length | None:
        """Of all trainings that took no more, those with the best mean on validation data; None where none did."""
        sign = 1 if self.lowest else -1
        done = [one for one in self.lengths if one.seconds <= LATE * seconds and one.values("valid", name)]
        return min(done, key=lambda one: sign * statistics.mean(one.values("valid", name)), default=None)


def ours(record: Record) -> bool:
    """Whether a record is of `python -m bench quality`."""
    return record.get("bench") == "quality"


def problems(records: Iterable[Record]) -> list[str]:
    """The names of the problems that are recorded."""
    return list(dict.fromkeys(one["work"].split(".")[0] for one in records if ours(one)))


def rows(name: str, records: Sequence[Record]) -> list[Row]:
    """The contenders at a problem, in the order of their records."""
    found = [one for one in records if ours(one) and one["work"] in (f"{name}.epochs", f"{name}.seconds")]
    return [
        _row(who, [one for one in found if one["who"] == who]) for who in dict.fromkeys(one["who"] for one in found)
    ]


def _row(who: str, records: list[Record]) -> Row:
    last = records[-1]
    records = [one for one in records if (one["params"], one["data"]) == (last["params"], last["data"])]
    lengths: dict[tuple[str, float], list[Record]] = {}
    for one in records:
        kind = one["work"].split(".")[1]
        lengths.setdefault((kind, one["run"][kind]), []).append(one)
    return Row(who, last["params"], [Length(*key, ones) for key, ones in lengths.items()], last["lowest"])


def tables(records: Sequence[Record]) -> list[str]:
    """Of every problem one table of figures, one of costs and one of settings."""
    found = []
    for name in problems(records):
        if at := rows(name, records):
            found += [_figures(name, at, "valid"), _figures(name, at, "test"), _costs(name, at), _settings(name, at)]
        if tried := [one for one in records if one["work"] == f"{name}.search" and ours(one)]:
            found.append(_search(name, tried))
    return found


def _figures(name: str, at: list[Row], part: str) -> str:
    """Every figure of validation or test data at all lengths. What is taken within seconds is chosen on validation data."""
    judged = _judged(at)
    names = list(
        dict.fromkeys(figure for row in at for one in row.lengths for run in one.records for figure in run[part])
    )
    columns = _columns(at)
    lines = [["readout", *([] if len(names) == 1 else ["figure"]), *(_column(*column) for column in columns)]]
    for row in at:
        for figure in names:
            cells = [_cell(_taken(row, *column, judged), part, figure) for column in columns]
            lines.append([row.who, *([] if len(names) == 1 else [figure]), *cells])
    what = f"{names[0]} of" if len(names) == 1 else "figures of"
    sources = dict.fromkeys(f"{run['data']}, commit {run['commit']}" for row in at for run in row.lengths[-1].records)
    said = {"valid": "validation data", "test": "test data"}[part]
    return "\n".join(
        [f"### {name}: {what} {said}", "", *_drawn(lines), "", *(f"Learned from {one}." for one in sources)]
    )


def _taken(row: Row, kind: str, amount: float, judged: str) -> Length | None:
    return row.at(kind, amount) if kind == "epochs" else row.within(amount, judged)


def _judged(at: list[Row]) -> str:
    name: str = at[0].lengths[0].records[0]["judged"]
    return name


def _columns(at: list[Row]) -> list[tuple[str, float]]:
    """All lengths that somebody was trained for, epochs first."""
    return sorted({(one.kind, one.amount) for row in at for one in row.lengths})


def _column(kind: str, amount: float) -> str:
    if kind == "seconds":
        return f"within {amount:g} s"
    return f"{amount:g} epoch" + "s" * (amount != 1)


def _cell(taken: Length | None, part: str, figure: str) -> str:
    values = taken.values(part, figure) if taken else []
    return mean(values) if taken and len(values) == len(taken.records) else "diverged" if taken and not values else ""


def mean(values: Sequence[float]) -> str:
    """Of seeds, with the lowest and the highest."""
    if not values:
        return ""
    low, middle, high = (_short(value) for value in (min(values), statistics.mean(values), max(values)))
    return middle if len(values) == 1 else f"{middle} ({low} to {high})"


def _short(value: float) -> str:
    return f"{value:.1f}" if abs(value) >= 10 else f"{value:.4f}" if abs(value) < 1 else f"{value:.2f}"


def _costs(name: str, at: list[Row]) -> str:
    """Of the longest training by epochs: speed, parameters, memory."""
    lines = [["readout", "examples/s", "seconds an epoch", "parameters", "peak memory"]]
    for row in at:
        records = next((one.records for one in row.lengths[::-1] if one.kind == "epochs"), row.lengths[-1].records)
        rate = statistics.median(one["examples"] / one["seconds"] for one in records)
        epoch = statistics.median(one["seconds"] / one["epochs"] for one in records)
        memory = [one["memory"] for one in records if one["memory"] is not None]
        held = f"{statistics.median(memory) / 2**20:,.0f} MiB" if memory else ""
        lines.append([row.who, f"{rate:,.0f}", f"{epoch:.3g}", f"{records[0]['parameters']:,}", held])
    record = at[0].lengths[0].records[0]
    where = f"{record['threads']} threads of {record['env'].get('cpu')}. Memory is what training took beyond the data."
    return "\n".join([f"### {name}: costs", "", *_drawn(lines), "", where])


def _settings(name: str, at: list[Row]) -> str:
    names = list(dict.fromkeys(setting for row in at for setting in row.settings))
    lines = [["readout", *names]] + [[row.who, *(str(row.settings.get(one, "")) for one in names)] for row in at]
    return "\n".join([f"### {name}: settings that the search found", "", *_drawn(lines)])


def _search(name: str, tried: list[Record]) -> str:
    """How many settings were tried, and the spread of what they reach: how much the search decides."""
    judged = tried[0]["judged"]
    lines = [["readout", "tried", "of them diverged", f"best {judged}", "median", "worst", "seconds in all"]]
    for who in dict.fromkeys(one["who"] for one in tried):
        mine = [one for one in tried if one["who"] == who]
        first = [one for one in mine if one["run"]["seed"] == mine[0]["run"]["seed"]]
        values = sorted(
            (one["valid"][judged] for one in first if judged in one["valid"]), reverse=not mine[0]["lowest"]
        )
        ends = [_short(value) for value in (values[0], statistics.median(values), values[-1])] if values else [""] * 3
        spent = sum(one["seconds"] for one in mine)
        lines.append([who, str(len(first)), str(len(first) - len(values)), *ends, f"{spent:,.0f}"])
    data = dict.fromkeys(f"{one['data']}, {one['run']['epochs']:g} epochs" for one in tried)
    return "\n".join([f"### {name}: search", "", *_drawn(lines), "", *(f"Searched on {one}." for one in data)])


def _drawn(lines: list[list[str]]) -> list[str]:
    return [f"| {' | '.join(line)} |" for line in (lines[0], ["---"] * len(lines[0]), *lines[1:])]
