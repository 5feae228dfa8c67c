"""The report of all benchmarks, made of its results.jsonl alone: a page, the same in Markdown, pictures, tables, a citation."""

from pathlib import Path

from bench import report
from bench.page import charts, facts, html, markdown, tables
from bench.page.part import parts
from bench.runner import RESULTS

FIGURES, TABLES = "figures", "tables"


def write(folder: Path) -> list[Path]:
    """Write report.html, report.md, citation.bib, figures/ and tables/ of folder/results.jsonl; returns the first three."""
    records = report.read([str(folder / RESULTS)])
    known, found = facts.of(records), parts(records)
    for name in (FIGURES, TABLES):
        (folder / name).mkdir(exist_ok=True)
    for part in found:
        for figure in part.section.figures:
            charts.write(figure, folder / FIGURES)
        for table in part.section.tables:
            tables.write(table, folder / TABLES)
    text = markdown.page(known, found)
    made = {
        "report.html": html.page(known.title, text, folder),
        "report.md": text,
        "citation.bib": facts.citation(known),
    }
    for name, text in made.items():
        (folder / name).write_text(text)
    return [folder / name for name in made]
