"""The report as Markdown, for those who read it in a repository."""

from collections.abc import Sequence

from bench.page import tables
from bench.page.facts import Facts
from bench.page.part import Part, laid_out
from bench.section import Figure, Table


def page(facts: Facts, parts: Sequence[Part]) -> str:
    """All of it; pictures and CSV files are beside it."""
    lines = [f"# {facts.title}", ""]
    if facts.quick:
        lines += ["**Quick mode: small sizes show that everything runs, not how fast it is.**", ""]
    told = {
        "Measured on": "; ".join(facts.machines),
        "Date": facts.date,
        "Commit": ", ".join(facts.commits),
        "Versions": ", ".join(f"{name} {version}" for name, version in facts.versions.items()),
    }
    lines += [f"{name}: {text}  " for name, text in told.items() if text]
    lines += ["", "All samples: [results.jsonl](results.jsonl). To cite: [citation.bib](citation.bib).", ""]
    for part in parts:
        lines += [f"## {part.section.title}", ""]
        for paragraph in part.section.answer:
            lines += [paragraph, ""]
        for _, one in laid_out(part.section):
            lines += [*(_table(one) if isinstance(one, Table) else _figure(one)), ""]
        if part.gaps:
            lines += ["Not measured:", "", *(f"* {gap}" for gap in part.gaps), ""]
    return "\n".join(lines)


def _figure(figure: Figure) -> list[str]:
    alt = figure.told.replace("[", "(").replace("]", ")").replace("\n", " ")
    return [f"![{alt}](figures/{figure.name}.svg)", "", f"*{figure.caption}*"]


def _table(table: Table) -> list[str]:
    named = [f"[CSV](tables/{table.name}.csv), made by `{table.command}`"]
    return [f"**{table.caption}**", "", *rows(table), "", *named]


def rows(table: Table) -> list[str]:
    """The lines of a table."""
    rules = ["---:" if tables.is_number(table, column) else "---" for column in range(len(table.header))]
    cells = [table.header, rules, *([tables.shown(cell) for cell in row] for row in table.rows)]
    return [f"| {' | '.join(map(_cell, row))} |" for row in cells]


def _cell(text: str) -> str:
    return text.replace("|", "\\|").replace("\n", " ")
