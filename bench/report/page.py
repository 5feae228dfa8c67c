"""The report, from its results.jsonl alone: report.md, the same as one page of HTML, figures, tables.

Its tables are in the README and in docs too, between `<!-- report: NAME -->` and `<!-- /report -->`, where NAME is a table's
name. `python -m bench pages docs/report/results.jsonl` rewrites them, and a test compares them.
"""

import csv
import html
import itertools
import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from bench.harness import report
from bench.report.section import (
    RESULTS,
    STEP,
    Figure,
    Record,
    Section,
    Table,
    found_sections,
    found_steps,
    lines_of,
)

TITLE = "Trees, heads and brute force at the output layer: comparative benchmarks"
PLACES = ("cpu", "cores", "os")  # entries of an environment that are no versions
FIGURES, TABLES = "figures", "tables"
LONGEST = 40  # rows of a table on the page
STYLE = """
body { margin: 2rem auto; padding: 0 1.25rem; max-width: 60rem; color: #1b1f24;
  font: 1rem/1.6 system-ui, "DejaVu Sans", sans-serif; }
h1, h2 { line-height: 1.25; }
h2 { margin-top: 3rem; }
svg { max-width: 100%; height: auto; }
table { display: block; overflow-x: auto; border-collapse: collapse; font-size: .88rem; line-height: 1.45; }
th, td { padding: .35rem .7rem; border-top: 1px solid #dfe3e8; vertical-align: top; font-variant-numeric: tabular-nums; }
th { background: #f1f3f5; }
code { background: #f1f3f5; font: .88em ui-monospace, monospace; }
@media print { h2 { break-after: avoid; } tr { break-inside: avoid; } }
"""
ROOT = Path(__file__).parents[2]
MARKED = re.compile(r"(<!-- report: ([\w-]+) -->\n)(.*?)(<!-- /report -->)", re.DOTALL)


def write(folder: Path) -> list[Path]:
    """Writes report.html, report.md, figures/ and tables/ of folder/results.jsonl; returns the first two."""
    records = report.read([str(folder / RESULTS)])
    facts, found = facts_of(records), parts(records)
    for name in (FIGURES, TABLES):
        (folder / name).mkdir(exist_ok=True)
    for part in found:
        for figure in part.section.figures:
            draw(figure, folder / FIGURES)
        for table in part.section.tables:
            write_csv(table, folder / TABLES)
    text = markdown(facts, found)
    made = {"report.html": as_html(text, folder), "report.md": text}
    for name, text in made.items():
        (folder / name).write_text(text)
    return [folder / name for name in made]


class Part(NamedTuple):
    """A section; gaps: its own, and unfinished steps."""

    name: str
    section: Section
    gaps: list[str]


def parts(records: Sequence[Record]) -> list[Part]:
    """Returns all sections, in the order of the page."""
    made = {name: module.section(records) for name, module in found_sections().items()}
    return [Part(name, section, [*section.gaps, *undone(name, records)]) for name, section in made.items()]


def undone(section: str, records: Sequence[Record]) -> list[str]:
    """Returns the unfinished steps of a section, with the reason."""
    states = {one["params"]["step"]: one for one in records if one["work"] == STEP}
    found = []
    for _, step in found_steps([section]):
        if step.name not in states:
            found.append(f"{step.name}: not run")
        elif states[step.name]["state"] != "done":
            found.append(f"{step.name}: {states[step.name]['state']}, {states[step.name]['reason']}")
    return found


class Facts(NamedTuple):
    """Facts of the whole report. date: of the last step, ISO, or ""; quick: small sizes, a functional test."""

    date: str
    machines: list[str]
    versions: dict[str, str]
    commits: list[str]
    quick: bool


def facts_of(records: Sequence[Record]) -> Facts:
    """Returns the facts in the records."""
    steps = [one for one in records if one["work"] == STEP]
    environments = [one["env"] for one in records if one.get("env")]
    machines = [f"{env['cpu']}, {env['cores']} cores" for env in environments if env.get("cpu")]
    devices = [one["device"] for one in records if one.get("device", "cpu") != "cpu"]
    versions = {name: str(value) for env in environments for name, value in env.items() if name not in PLACES}
    commits = list(dict.fromkeys(one["commit"] for one in records if one.get("commit")))
    date = max((one["ended"] for one in steps), default="")[:10]
    quick = any(one["quick"] for one in steps)
    return Facts(date, list(dict.fromkeys([*machines, *devices])), versions, commits, quick)


def markdown(facts: Facts, parts: Sequence[Part]) -> str:
    """Returns the whole report; pictures and CSV files are separate."""
    lines = [f"# {TITLE}", ""]
    if facts.quick:
        lines += ["**Quick mode: small sizes show that everything runs, not how fast it is.**", ""]
    texts = {
        "Measured on": "; ".join(facts.machines),
        "Date": facts.date,
        "Commit": ", ".join(facts.commits),
        "Versions": ", ".join(f"{name} {version}" for name, version in facts.versions.items()),
    }
    lines += [f"{name}: {text}  " for name, text in texts.items() if text]
    lines += ["", "All samples: [results.jsonl](results.jsonl).", ""]
    lines += [" ".join(part.section.abstract for part in parts if part.section.abstract), ""]
    for part in parts:
        lines += [f"## {part.section.title}", ""]
        for paragraph in part.section.answer:
            lines += [paragraph, ""]
        for one in laid_out(part.section):
            lines += [*(_table(one) if isinstance(one, Table) else _figure(one)), ""]
        if part.gaps:
            lines += ["Not in this report:", "", *(f"* {gap}" for gap in part.gaps), ""]
    return "\n".join(lines)


def laid_out(section: Section) -> list[Figure | Table]:
    """Returns the tables of a section, each after the figures that show its numbers.

    Raises ValueError for a figure without a table.
    """
    found: list[Figure | Table] = []
    for table in section.tables:
        found += [*(figure for figure in section.figures if figure.table == table.name), table]
    for figure in section.figures:
        if figure not in found:
            raise ValueError(f"figure {figure.name}: the section has no table {figure.table!r}")
    return found


def _figure(figure: Figure) -> list[str]:
    return [f"![{figure.caption}](figures/{figure.name}.svg)", "", f"*{figure.caption}*"]


def _table(table: Table) -> list[str]:
    named = f"[CSV](tables/{table.name}.csv), made by `{table.command}`"
    if len(table.rows) > LONGEST:
        return [f"**{table.caption}**: {len(table.rows)} rows, {named}"]
    return [f"**{table.caption}**", "", *lines_of(table), "", named]


def write_csv(table: Table, folder: Path) -> None:
    """Writes NAME.csv, with all digits."""
    with (folder / f"{table.name}.csv").open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(table.header)
        writer.writerows(table.rows)


def as_html(text: str, folder: Path) -> str:
    """Returns the Markdown `text` as one page, with the style and the pictures from `folder` embedded."""
    from markdown_it import MarkdownIt

    def drawn(found: re.Match[str]) -> str:  # with alternative text
        return (folder / found[1]).read_text().replace("<svg ", f'<svg role="img" aria-label="{found[2]}" ', 1)

    body = MarkdownIt("js-default").render(text)  # shows HTML of a section as text
    body = re.sub(r'<img src="([^"]*\.svg)" alt="([^"]*)"\s*/?>', drawn, body)
    head = '<meta charset="utf-8"><meta name="viewport" content="width=device-width">'
    head += f"<title>{html.escape(TITLE)}</title><style>{STYLE}</style>"
    return f'<!doctype html>\n<html lang="en">\n<head>{head}</head>\n<body>\n{body}</body>\n</html>\n'


def write_pages(records: Sequence[Record], root: Path) -> list[Path]:
    """Writes the tables of all pages under `root` that have some; returns the pages that changed.

    Raises ValueError, before any write, for a NAME that is no table of the report.
    """
    changed = {path: text for path, text in rewritten(records, root) if text != path.read_text()}
    for path, text in changed.items():
        path.write_text(text)
    return list(changed)


def rewritten(records: Sequence[Record], root: Path) -> Iterator[tuple[Path, str]]:
    """Yields the pages with such tables, with new tables from the records."""
    tables = {table.name: table for part in parts(records) for table in part.section.tables}
    for path in (
        root / "README.md",
        *sorted((root / "docs").glob("*.md")),
        *sorted((root / "docs/results").glob("*.md")),
    ):
        text = path.read_text()
        if MARKED.search(text):
            yield path, MARKED.sub(lambda found, path=path: _anew(found, path, tables), text)  # type: ignore[misc]


def _anew(found: re.Match[str], path: Path, tables: Mapping[str, Table]) -> str:
    name = found[2]
    if name not in tables:
        raise ValueError(f"{path}: found the mark of {name!r}, expected a table of the report: {', '.join(tables)}")
    return found[1] + "".join(f"{line}\n" for line in lines_of(tables[name])) + found[4]


# Figures as SVG, by Matplotlib: one look, in colours that are distinct for colour-blind readers.

# In order of use; each has a contrast of at least 3 to its background, as WCAG 2 requires of graphics.
SERIES = ["#0072b2", "#d55e00", "#00835f", "#a8487f", "#8a6a00", "#5b5b5b", "#5a50c8", "#8b1a1a", "#c4008f", "#4a7a00"]
MARKERS = "os^DPvX<>*"
# Words of contenders' names, in the order of their colours: the last one in a name decides, so a contender keeps its colour.
WORDS = ("full", "sampled", "tree", "head", "mixture", "overlapped", "torch", "adaptive", "chunked", "ours")
SIZE = 7.2, 4.2  # inches
LOOK: Any = {
    "svg.fonttype": "none",  # text stays text
    "font.family": "sans-serif",
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "axes.axisbelow": True,
    "grid.color": "#dfe3e8",
    "legend.frameon": False,
    "legend.fontsize": 9,
}


def draw(figure: Figure, folder: Path) -> None:
    """Writes NAME.svg, byte-identical for the same figure."""
    import matplotlib
    from matplotlib.figure import Figure as Canvas

    path = folder / f"{figure.name}.svg"
    with matplotlib.rc_context({**LOOK, "svg.hashsalt": figure.name}):
        canvas = Canvas(figsize=SIZE, layout="constrained")
        axes = canvas.subplots()
        {"lines": _draw_lines, "bars": _bars, "timeline": _timeline}[figure.kind](axes, figure.points)
        if figure.kind == "bars":
            axes.yaxis.set_major_formatter(_plain)
        axes.set(xlabel=figure.x, ylabel=figure.y)
        for name in figure.log:
            getattr(axes, f"set_{name}scale")("log")
            _ticks(getattr(axes, f"{name}axis"), sorted({point["x"] for point in figure.points} if name == "x" else ()))
        handles, labels = axes.get_legend_handles_labels()
        columns = 2 if max(map(len, labels)) > 24 else 3
        canvas.legend(handles, labels, loc="outside lower center", ncols=columns)
        canvas.savefig(path, metadata={"Date": None})
    text = path.read_text()
    text = " ".join(text[text.index("<svg") :].split())
    # Makes element ids unique on one page
    path.write_text(re.sub(r'( id="|url\(#|href="#)', rf"\1{figure.name}-", text) + "\n")


def _ticks(axis: Any, values: Sequence[float]) -> None:
    """Labels a logarithmic axis in plain numbers: at the values, if few and apart, else more densely if it is short."""
    from matplotlib import ticker

    low, high = axis.get_view_interval()
    subs = (1,) if high > 1000 * low else (1, 2, 5) if high > 10 * low else range(1, 10)
    apart = all(right > left * (high / low) ** 0.1 for left, right in itertools.pairwise(values))
    fixed = 0 < len(values) <= 6 and apart
    axis.set_major_locator(ticker.FixedLocator(values) if fixed else ticker.LogLocator(subs=subs))
    axis.set_major_formatter(_plain)
    axis.set_minor_formatter(ticker.NullFormatter())


def _plain(value: float, _: float) -> str:
    if value < 1e6:
        return f"{value:,.6g}"
    return f"{value / 1e6:.3g} M" if value < 1e9 else f"{value / 1e9:.3g} G"


def _styles(names: Sequence[str]) -> dict[str, tuple[str, str]]:
    """Returns colour and marker of each name: those of its last word in WORDS, or else the last free ones."""
    found: dict[str, int] = {}
    for name in names:
        at = max((at for at, word in enumerate(WORDS) if word in name), default=-1)
        free = (place for place in reversed(range(len(SERIES))) if place not in found.values())
        found[name] = at if at >= 0 and at not in found.values() else next(free, 0)
    return {name: (SERIES[at], MARKERS[at]) for name, at in found.items()}


def _series(points: Sequence[dict[str, Any]]) -> dict[str, list[dict[str, Any]]]:
    found: dict[str, list[dict[str, Any]]] = {}
    for point in points:
        found.setdefault(point["who"], []).append(point)
    return found


def _interval(points: Sequence[dict[str, Any]]) -> list[list[float]]:
    """Returns the distances of each point to the ends of its interval; empty without intervals."""
    return [
        [max(point["y"] - (point.get("low") or point["y"]), 0) for point in points],
        [max((point.get("high") or point["y"]) - point["y"], 0) for point in points],
    ]


def _draw_lines(axes: Any, points: Sequence[dict[str, Any]]) -> None:
    series = _series(points)
    for who, (colour, marker) in _styles([*series]).items():
        some = sorted(series[who], key=lambda point: point["x"])
        x, y = ([point[name] for point in some] for name in "xy")
        axes.errorbar(x, y, _interval(some), color=colour, marker=marker, markersize=5, label=who)


def _bars(axes: Any, points: Sequence[dict[str, Any]]) -> None:
    """Draws a group of bars at each x, one bar per series."""
    places = list(dict.fromkeys(point["x"] for point in points))
    series = _series(points)
    width, styles = 0.8 / len(series), _styles([*series])
    for number, (who, some) in enumerate(series.items()):
        at = [places.index(point["x"]) + (number - (len(series) - 1) / 2) * width for point in some]
        heights = [point["y"] for point in some]
        axes.bar(at, heights, width, yerr=_interval(some), color=styles[who][0], label=who)
    axes.set_xticks(range(len(places)), places, rotation=15)


def _timeline(axes: Any, points: Sequence[dict[str, Any]]) -> None:
    """Draws a lane per `y`, from x to `end`, with a colour per series."""
    lanes = list(dict.fromkeys(point["y"] for point in points))
    for number, (who, some) in enumerate(_series(points).items()):
        lane, left = [lanes.index(point["y"]) for point in some], [point["x"] for point in some]
        length = [point["end"] - point["x"] for point in some]
        axes.barh(lane, length, left=left, color=SERIES[number % len(SERIES)], label=who)
    axes.set_yticks(range(len(lanes)), lanes)
    axes.invert_yaxis()
