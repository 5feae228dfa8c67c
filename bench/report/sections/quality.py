"""Equal time, equal quality: what readouts reach in so many seconds of training, and how many they take to reach as much."""

import statistics
from collections.abc import Iterator, Sequence
from typing import Any

from bench.quality import tables as quality_tables
from bench.quality.tables import Row
from bench.report.section import Cell, Figure, Record, Section, Step, Table, shown

PLACE = 70
TEXT = ("quality", "--only", "documentation", "--readouts")
WORDS, FEW = "full softmax,tree huffman,head of softmaxes,sampled 1024", "full softmax,tree huffman"
ITEMS = ("quality", "--only", "items", "--readouts", "bag full,bag sampled 1024,bag tree balanced,popularity")
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
AFTER = ("after ", " s")  # what names of figures of `large` have around the seconds
LARGE_HEADER = ["classes", "who", "seconds of one processor", "perplexity"]


def section(records: Sequence[Record]) -> Section:
    """A figure and a table a problem; then vocabularies of up to a million classes."""
    answer = [
        "Every readout is trained under the same trunk, with settings that one search found for it on validation data. Lines "
        "are means over seeds of validation data, bands go from the lowest seed to the highest; seconds are of training alone."
    ]
    figures, tables = [], []
    for problem in quality_tables.problems(records):
        rows = [row for row in quality_tables.rows(problem, records) if list(_points(row))]
        if rows:
            answer += [_told(problem, rows)]
            figures.append(_figure(problem, rows))
            tables.append(_table(problem, rows))
    for work in dict.fromkeys(one["work"] for one in records if one["work"].startswith("large.")):
        found = [one for one in records if one["work"] == work]
        answer.append(_large_told(found))
        figures.append(_large_figure(work, found))
        tables.append(_large_table(work, found))
    gaps = [] if figures else ["No training to a quality has been measured."]
    return Section("Equal time, equal quality", answer if figures else [], figures, tables, gaps)


def _judged(row: Row) -> str:
    name: str = row.lengths[0].records[0]["judged"]
    return name


def _points(row: Row) -> Iterator[dict[str, Any]]:
    """What a contender reached, by the seconds that it took."""
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


def _told(problem: str, rows: Sequence[Row]) -> str:
    """Who reaches most, and how long the others take to reach what the fastest has first."""
    sign = 1 if rows[0].lowest else -1
    best = {row.who: min(_points(row), key=lambda point: sign * point["mean"]) for row in rows}
    who, first = min(best.items(), key=lambda one: sign * one[1]["mean"])
    name = _judged(rows[0])
    said = f"**{problem}**: {who} reaches the best {name}, {shown(first['mean'])}, in {shown(first['seconds'])} s."
    if len(rows) == 1:
        return said
    level = max(sign * point["mean"] for point in best.values()) * sign
    took = {}
    for row in rows:
        took[row.who] = min(point["seconds"] for point in _points(row) if sign * point["mean"] <= sign * level)
    reached = ", ".join(f"{who} in {shown(seconds)} s" for who, seconds in sorted(took.items(), key=lambda one: one[1]))
    return f"{said} A {name} of {shown(level)}, which all reach, takes at the lengths that were tried: {reached}."


def _figure(problem: str, rows: Sequence[Row]) -> Figure:
    name, lowest = _judged(rows[0]), rows[0].lowest
    points = [
        {"who": point["who"], "x": point["seconds"], "y": point["mean"], "low": point["low"], "high": point["high"]}
        for row in rows
        for point in _points(row)
    ]
    caption = f"{problem}: {name} by seconds of training ({'less' if lowest else 'more'} is better)"
    axes, log = ("seconds of training", f"{name} of validation data"), "xy" if lowest else "x"
    told, name = _told(problem, rows).replace("**", ""), f"quality-{problem}"
    return Figure(name, caption, told, name, points, *axes, log=log)


def _table(problem: str, rows: Sequence[Row]) -> Table:
    cells: list[list[Cell]] = [list(point.values()) for row in rows for point in _points(row)]
    record = rows[0].lengths[0].records[0]
    caption = (
        f"{problem}: {_judged(rows[0])} of validation data, over seeds. {record['data']}; {record['threads']} threads"
    )
    return Table(f"quality-{problem}", caption, CURVE, cells, f"python -m bench quality --only {problem}")


def _reached(record: Record) -> list[tuple[float, float]]:
    """Seconds and perplexity of a record of `large`."""
    before, after = AFTER
    return [
        (float(name.removeprefix(before).removesuffix(after)), values[0])
        for name, values in record["quality"].items()
        if name.startswith(before)
    ]


def _large_told(found: Sequence[Record]) -> str:
    best = min(found, key=lambda one: _reached(one)[-1][1])
    seconds, value = _reached(best)[-1]
    classes = best["params"]["classes"]
    said = f"**{classes:,} classes** of real text: after {seconds:g} s of one processor {best['who']} has the best perplexity"
    return f"{said}, {value:,.0f}."


def _large_figure(work: str, found: Sequence[Record]) -> Figure:
    points = [
        {"who": one["who"], "x": seconds, "y": value}
        for one in found
        for seconds, value in _reached(one)
        if value < one["params"]["classes"]  # that of guessing; one that diverges has more
    ]
    caption = f"{found[0]['params']['classes']:,} classes: perplexity by seconds of one processor (less is better)"
    axes, name = ("seconds of one processor", "perplexity of validation data"), work.replace(".", "-")
    return Figure(name, caption, _large_told(found).replace("**", ""), name, points, *axes)


def _large_table(work: str, found: Sequence[Record]) -> Table:
    cells: list[list[Cell]] = [
        [one["params"]["classes"], one["who"], *reached] for one in found for reached in _reached(one)
    ]
    command = f"python -m bench large --only {work.removeprefix('large.')}"
    return Table(work.replace(".", "-"), found[0]["data"], LARGE_HEADER, cells, command)
