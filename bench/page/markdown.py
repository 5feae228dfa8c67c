"""The report as Markdown, for those who read it in a repository."""

from collections.abc import Sequence

from bench.page import tables
from bench.page.facts import Facts
from bench.page.part import Part
from bench.section import Table


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
        for figure in part.section.figures:
            alt = figure.told.replace("[", "(").replace("]", ")").replace("\n", " ")
            lines += [f"![{alt}](figures/{figure.name}.svg)", "", f"*{figure.caption}*", ""]
        for table in part.section.tables:
            lines += [*_table(table), ""]
        if part.gaps:
            lines += ["Not measured:", "", *(f"* {gap}" for gap in part.gaps), ""]
    return "\n".join(lines)


def _table(table: Table) -> list[str]:
    rules = ["---:" if tables.is_number(table, column) else "---" for column in range(len(table.header))]
    rows = [table.header, rules, *([tables.shown(cell) for cell in row] for row in table.rows)]
    found = [f"**{table.caption}**", "", *(f"| {' | '.join(map(_cell, row))} |" for row in rows), ""]
    return [*found, f"[CSV](tables/{table.name}.csv), made by `{table.command}`"]


def _cell(text: str) -> str:
    return text.replace("|", "\\|").replace("\n", " ")
