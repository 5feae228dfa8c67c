"""Equal time, equal quality: the figures of readouts by seconds of training, and the seconds to an equal figure.

It also has the tables that `python -m bench report` prints of the same records: figures, costs, settings, the search.
"""

import statistics
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NamedTuple

from bench.quality.quality import PROBLEMS
from bench.report.section import Cell, Figure, Record, Section, Step, Table, drawn, shown

PLACE = 70
TEXT = ("quality", "--only", "documentation", "--readouts")
WORDS, FEW = "full softmax,tree huffman,head of softmaxes,sampled 1024", "full softmax,tree huffman"
ITEMS = (
    "items",
    "--only",
    "ml-100k",
    "--readouts",
    "full softmax,sampled softmax,clustered tree,counts",
    "--seeds",
    "1",
)
LABELS = (
    "quality",
    "--only",
    "labels",
    "--readouts",
    "sparse label tree x 1,sparse label tree x 3,one against the rest",
)
LARGE = ("large", "--only", "pairs", "--readouts", "tree,mixture of trees,head,sampled 1024,sampled 4096 log-uniform")
SHORT = ("--epochs", "1", "--tries", "4", "--seconds")
STEPS = [
    Step("quality of language models", (*TEXT, WORDS, *SHORT, "1,4"), 75, 4, quick=(*TEXT, FEW)),
    Step("quality of next items", (*ITEMS, *SHORT, "5,15"), 45, 5, needs=("ml-100k",)),
    Step("quality of labels", (*LABELS, *SHORT, "1,5"), 44, 2, needs=("labels",)),
    Step("quality at large vocabularies", (*LARGE, "--seconds", "15,45"), 25, 5, needs=("wikitext-2",)),
]
CURVE = ["who", "asked for", "seconds", "seeds", "mean", "lowest", "highest", "on test data"]
AFTER = ("after ", " s")  # prefix and suffix of the seconds in figure names of `large`
LARGE_HEADER = ["classes", "who", "seconds of one processor", "perplexity"]


LATE = 1.05  # factor by which a training may exceed the seconds of its column


class Length(NamedTuple):
    """Trainings of one contender at one length, one record per seed.

    kind, amount  the requested length: ("epochs", 2) or ("seconds", 60)
    """

    kind: str
    amount: float
    records: list[Record]

    def values(self, part: str, name: str) -> list[float]:
        """Returns a figure of "valid" or "test" for each seed that has it."""
        return [one[part][name] for one in self.records if name in one[part]]

    @property
    def seconds(self) -> float:
        """The seconds of training, mean over seeds."""
        return statistics.mean(one["seconds"] for one in self.records)


class Row(NamedTuple):
    """A contender, its settings and its trainings by length; lowest: True if less of the deciding figure is better."""

    who: str
    settings: dict[str, Any]
    lengths: list[Length]
    lowest: bool

    def at(self, kind: str, amount: float) -> Length | None:
        """Returns the trainings of a length; None if there are none."""
        return next((one for one in self.lengths if (one.kind, one.amount) == (kind, amount)), None)

    def within(self, seconds: float, name: str) -> Length | None:
        """Returns the length with the best validation mean among those of at most LATE times the seconds; None without any."""
        sign = 1 if self.lowest else -1
        done = [one for one in self.lengths if one.seconds <= LATE * seconds and one.values("valid", name)]
        return min(done, key=lambda one: sign * statistics.mean(one.values("valid", name)), default=None)


def section(records: Sequence[Record]) -> Section:
    """Returns a figure and a table per problem, then those of vocabularies of up to a million classes."""
    answer = [
        "Every readout is trained under the same trunk, with settings that one search found for it on validation data. Lines "
        "are means over seeds of validation data, bands go from the lowest seed to the highest; seconds are of training alone."
    ]
    figures, tables = [], []
    for problem in problems(records):
        at = [row for row in rows(problem, records) if list(_points(row))]
        if at:
            answer += [_summary(problem, at)]
            figures.append(_figure(problem, at))
            tables.append(_table(problem, at))
    for work in dict.fromkeys(one["work"] for one in records if one["work"].startswith("large.")):
        found = [one for one in records if one["work"] == work]
        answer.append(_large_summary(found))
        figures.append(_large_figure(work, found))
        tables.append(_large_table(work, found))
    gaps = [] if figures else ["No training to a quality has been measured."]
    return Section("Equal time, equal quality", answer if figures else [], figures, tables, gaps)


def _judged(row: Row) -> str:
    name: str = row.lengths[0].records[0]["judged"]
    return name


def _points(row: Row) -> Iterator[dict[str, Any]]:
    """Yields the figures of a contender at each length, in order of seconds."""
    name = _judged(row)
    for one in sorted(row.lengths, key=lambda one: one.seconds):
        values, tested = one.values("valid", name), one.values("test", name)
        if values:
            yield {
                "who": row.who,
                "length": f"{one.amount:g} {one.kind}",
                "seconds": one.seconds,
                "seeds": len(values),
                "mean": statistics.mean(values),
                "low": min(values),
                "high": max(values),
                "test": statistics.mean(tested) if tested else None,
            }


def _summary(problem: str, rows: Sequence[Row]) -> str:
    """Returns sentences on the best contender, and on the seconds of each to the best level that all reach."""
    sign = 1 if rows[0].lowest else -1
    best = {row.who: min(_points(row), key=lambda point: sign * point["mean"]) for row in rows}
    who, first = min(best.items(), key=lambda one: sign * one[1]["mean"])
    name = _judged(rows[0])
    sentence = f"**{problem}**: {who} reaches the best {name}, {shown(first['mean'])}, in {shown(first['seconds'])} s."
    if len(rows) == 1:
        return sentence
    level = max(sign * point["mean"] for point in best.values()) * sign
    took = {}
    for row in rows:
        took[row.who] = min(point["seconds"] for point in _points(row) if sign * point["mean"] <= sign * level)
    reached = ", ".join(f"{who} in {shown(seconds)} s" for who, seconds in sorted(took.items(), key=lambda one: one[1]))
    return f"{sentence} A {name} of {shown(level)}, which all reach, takes at the lengths that were tried: {reached}."


def _figure(problem: str, rows: Sequence[Row]) -> Figure:
    name, lowest = _judged(rows[0]), rows[0].lowest
    points = [
        {"who": point["who"], "x": point["seconds"], "y": point["mean"], "low": point["low"], "high": point["high"]}
        for row in rows
        for point in _points(row)
    ]
    caption = f"{problem}: {name} by seconds of training ({'less' if lowest else 'more'} is better)"
    axes, log = ("seconds of training", f"{name} of validation data"), "xy" if lowest else "x"
    alt, name = _summary(problem, rows).replace("**", ""), f"quality-{problem}"
    return Figure(name, caption, alt, name, points, *axes, log=log)


def _table(problem: str, rows: Sequence[Row]) -> Table:
    cells: list[list[Cell]] = [list(point.values()) for row in rows for point in _points(row)]
    record = rows[0].lengths[0].records[0]
    caption = (
        f"{problem}: {_judged(rows[0])} of validation data, over seeds. {record['data']}; {record['threads']} threads"
    )
    boards = {"language": "language_board"} | dict.fromkeys(PROBLEMS, f"quality --only {problem}")
    command = boards.get(problem, f"items --only {problem}")
    return Table(f"quality-{problem}", caption, CURVE, cells, f"python -m bench {command}")


def _reached(record: Record) -> list[tuple[float, float]]:
    """Returns the seconds and perplexities of a record of `large`."""
    before, after = AFTER
    return [
        (float(name.removeprefix(before).removesuffix(after)), values[0])
        for name, values in record["quality"].items()
        if name.startswith(before)
    ]


def _large_summary(found: Sequence[Record]) -> str:
    best = min(found, key=lambda one: _reached(one)[-1][1])
    seconds, value = _reached(best)[-1]
    classes = best["params"]["classes"]
    after = f"after {seconds:g} s of one processor"
    return f"**{classes:,} classes** of real text: {after} {best['who']} has the best perplexity, {value:,.0f}."


def _large_figure(work: str, found: Sequence[Record]) -> Figure:
    points = [
        {"who": one["who"], "x": seconds, "y": value}
        for one in found
        for seconds, value in _reached(one)
        if value < one["params"]["classes"]  # perplexity of guessing; diverged trainings exceed it
    ]
    caption = f"{found[0]['params']['classes']:,} classes: perplexity by seconds of one processor (less is better)"
    axes, name = ("seconds of one processor", "perplexity of validation data"), work.replace(".", "-")
    return Figure(name, caption, _large_summary(found).replace("**", ""), name, points, *axes)


def _large_table(work: str, found: Sequence[Record]) -> Table:
    cells: list[list[Cell]] = [
        [one["params"]["classes"], one["who"], *reached] for one in found for reached in _reached(one)
    ]
    command = f"python -m bench large --only {work.removeprefix('large.')}"
    return Table(work.replace(".", "-"), found[0]["data"], LARGE_HEADER, cells, command)


# Tables of `python -m bench report`


def ours(record: Record) -> bool:
    """True if a record is from `python -m bench quality`."""
    return record.get("bench") == "quality"


def problems(records: Iterable[Record]) -> list[str]:
    """Returns the names of the recorded problems."""
    return list(dict.fromkeys(one["work"].split(".")[0] for one in records if ours(one)))


def rows(name: str, records: Sequence[Record]) -> list[Row]:
    """Returns the contenders at a problem, in the order of their records."""
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


def all_tables(records: Sequence[Record]) -> list[str]:
    """Returns tables of validation figures, test figures, costs, settings and the search of every problem."""
    found = []
    for name in problems(records):
        if at := rows(name, records):
            found += [_figures(name, at, "valid"), _figures(name, at, "test"), _costs(name, at), _settings(name, at)]
        if tried := [one for one in records if one["work"] == f"{name}.search" and ours(one)]:
            found.append(_search(name, tried))
    return found


def _figures(name: str, at: list[Row], part: str) -> str:
    """Returns a table of all figures of "valid" or "test" by length; validation data select the best length within seconds."""
    judged = _judged(at[0])
    names = list(
        dict.fromkeys(figure for row in at for one in row.lengths for run in one.records for figure in run[part])
    )
    columns = sorted({(one.kind, one.amount) for row in at for one in row.lengths})  # all lengths, epochs first
    lines = [["readout", *([] if len(names) == 1 else ["figure"]), *(_column(*column) for column in columns)]]
    for row in at:
        for figure in names:
            taken = [row.at(kind, n) if kind == "epochs" else row.within(n, judged) for kind, n in columns]
            cells = [_cell(one, part, figure) for one in taken]
            lines.append([row.who, *([] if len(names) == 1 else [figure]), *cells])
    what = f"{names[0]} of" if len(names) == 1 else "figures of"
    sources = dict.fromkeys(f"{run['data']}, commit {run['commit']}" for row in at for run in row.lengths[-1].records)
    where = {"valid": "validation data", "test": "test data"}[part]
    return "\n".join(
        [f"### {name}: {what} {where}", "", *drawn(lines), "", *(f"Learned from {one}." for one in sources)]
    )


def _column(kind: str, amount: float) -> str:
    return f"within {amount:g} s" if kind == "seconds" else f"{amount:g} epoch" + "s" * (amount != 1)


def _cell(taken: Length | None, part: str, figure: str) -> str:
    values = taken.values(part, figure) if taken else []
    return mean(values) if taken and len(values) == len(taken.records) else "diverged" if taken and not values else ""


def mean(values: Sequence[float]) -> str:
    """Returns the mean over seeds, with the lowest and the highest; "" for none."""
    if not values:
        return ""
    low, middle, high = (_short(value) for value in (min(values), statistics.mean(values), max(values)))
    return middle if len(values) == 1 else f"{middle} ({low} to {high})"


def _short(value: float) -> str:
    return f"{value:.1f}" if abs(value) >= 10 else f"{value:.4f}" if abs(value) < 1 else f"{value:.2f}"


def _costs(name: str, at: list[Row]) -> str:
    """Returns a table of speed, parameters and memory in the longest training by epochs."""
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
    return "\n".join([f"### {name}: costs", "", *drawn(lines), "", where])


def _settings(name: str, at: list[Row]) -> str:
    names = list(dict.fromkeys(setting for row in at for setting in row.settings))
    lines = [["readout", *names]] + [[row.who, *(str(row.settings.get(one, "")) for one in names)] for row in at]
    return "\n".join([f"### {name}: settings that the search found", "", *drawn(lines)])


def _search(name: str, tried: list[Record]) -> str:
    """Returns a table of the number of settings tried and the spread of their figures, which shows the effect of the search."""
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
    return "\n".join([f"### {name}: search", "", *drawn(lines), "", *(f"Searched on {one}." for one in data)])
