"""Quality at equal time: the figures of readouts by seconds of training, and the seconds to an equal figure."""

import statistics
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NamedTuple

from bench.quality.quality import PROBLEMS
from bench.report.section import Cell, Figure, Record, Section, Step, Table, shown

PLACE = 70
TITLE = "Quality at equal time"
TEXT = ("quality", "--only", "documentation", "--readouts")
WORDS, FEW = "full softmax,tree huffman,head of softmaxes,sampled 1024", "full softmax,tree huffman"
ITEMS = (
    "items",
    "--only",
    "ml-100k",
    "--seeds",
    "1",
    "--readouts",
    "full softmax,sampled softmax,clustered tree,counts",
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
    Step("quality of next items", ITEMS, 45, 4, needs=("ml-100k",)),
    Step("quality of labels", (*LABELS, *SHORT, "1,5"), 44, 2, needs=("labels",)),
    Step("quality at large vocabularies", (*LARGE, "--seconds", "15,45"), 25, 5, needs=("wikitext-2",)),
]
CURVE = ["who", "length", "seconds", "seeds", "mean", "lowest", "highest", "on test data"]
AFTER = ("after ", " s")  # prefix and suffix of the seconds in figure names of `large`
LARGE_HEADER = ["classes", "who", "CPU seconds", "perplexity"]


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
    """A contender and its trainings by length; lowest: True if less of the deciding figure is better."""

    who: str
    lengths: list[Length]
    lowest: bool


def section(records: Sequence[Record]) -> Section:
    """Returns a figure and a table per problem, then those of vocabularies of up to a million classes."""
    answer = [
        "Output layers are trained under the same trunk, each with the settings that a search found for it on validation data. "
        "Searches and trainings are short; longer ones, and the defaults, can be better. Sampled N: a sampled softmax with "
        "N negatives. Points are means over seeds; bars go from the lowest to the highest seed; seconds are of training alone."
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
    if not figures:
        return Section(TITLE, [], gaps=["No training to a quality has been measured."])
    return Section(TITLE, answer, figures, tables, abstract=answer[-1].replace("**", ""))


def _judged(row: Row) -> str:
    return row.lengths[0].records[0]["judged"]


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
    sentence = f"**{problem}**: {who} has the best {name}, {shown(first['mean'])}, after {shown(first['seconds'])} s."
    if len(rows) == 1:
        return sentence
    level = max(sign * point["mean"] for point in best.values()) * sign
    took = {}
    for row in rows:
        took[row.who] = min(point["seconds"] for point in _points(row) if sign * point["mean"] <= sign * level)
    reached = ", ".join(f"{who} in {shown(seconds)} s" for who, seconds in sorted(took.items(), key=lambda one: one[1]))
    return f"{sentence} Shortest training that reaches {shown(level)}, the best {name} that all reach: {reached}."


def _figure(problem: str, rows: Sequence[Row]) -> Figure:
    name, lowest = _judged(rows[0]), rows[0].lowest
    points = [
        {"who": point["who"], "x": point["seconds"], "y": point["mean"], "low": point["low"], "high": point["high"]}
        for row in rows
        for point in _points(row)
    ]
    caption = f"{problem}: {name} by seconds of training ({'less' if lowest else 'more'} is better)"
    axes, log = ("seconds of training", f"{name} of validation data"), "xy" if lowest else "x"
    name = f"quality-{problem}"
    return Figure(name, caption, name, points, *axes, log=log)


def _table(problem: str, rows: Sequence[Row]) -> Table:
    cells: list[list[Cell]] = [list(point.values()) for row in rows for point in _points(row)]
    record = rows[0].lengths[0].records[0]
    caption = (
        f"{problem}: {_judged(rows[0])} of validation data, over seeds. {record['data']}; {record['threads']} threads"
    )
    boards = {"language": "language_board"} | dict.fromkeys(PROBLEMS, f"quality --only {problem}")
    command = boards.get(problem, f"items --only {problem}")
    return Table(f"quality-{problem}", caption, CURVE, cells, f"python -m bench {command}")


def reached(record: Record) -> list[tuple[float, float]]:
    """Returns the seconds and perplexities of a record of `large`."""
    before, after = AFTER
    return [
        (float(name.removeprefix(before).removesuffix(after)), values[0])
        for name, values in record["quality"].items()
        if name.startswith(before)
    ]


def _large_summary(found: Sequence[Record]) -> str:
    last = sorted((perplexity, seconds, one["who"]) for one in found for seconds, perplexity in reached(one)[-1:])
    values = ", ".join(f"{who} {perplexity:,.0f}" for perplexity, _, who in last)
    classes = found[0]["params"]["classes"]
    return f"**{classes:,} classes** of WikiText-2: perplexities after {last[0][1]:g} CPU seconds are {values}."


def _large_figure(work: str, found: Sequence[Record]) -> Figure:
    points = [
        {"who": one["who"], "x": seconds, "y": value}
        for one in found
        for seconds, value in reached(one)
        if value < one["params"]["classes"]  # perplexity of guessing; diverged trainings exceed it
    ]
    caption = f"{found[0]['params']['classes']:,} classes: perplexity by CPU seconds (less is better)"
    axes, name = ("CPU seconds", "perplexity of validation data"), work.replace(".", "-")
    return Figure(name, caption, name, points, *axes)


def _large_table(work: str, found: Sequence[Record]) -> Table:
    cells: list[list[Cell]] = [
        [one["params"]["classes"], one["who"], *point] for one in found for point in reached(one)
    ]
    command = f"python -m bench large --only {work.removeprefix('large.')}"
    return Table(work.replace(".", "-"), found[0]["data"], LARGE_HEADER, cells, command)


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
    return Row(who, [Length(*key, ones) for key, ones in lengths.items()], last["lowest"])
