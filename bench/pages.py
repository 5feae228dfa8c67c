"""Tables of the README and of docs that are the report's: `python -m bench pages docs/report/results.jsonl` writes them anew.

Such a table stands between `<!-- report: NAME -->` and `<!-- /report -->`; NAME is that of a table of a section, and of its CSV
file. A test compares them with the committed report.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from bench.page import markdown
from bench.page.part import parts
from bench.report import Record
from bench.section import Table

ROOT = Path(__file__).parents[1]
MARKED = re.compile(r"(<!-- report: (\w+) -->\n)(.*?)(<!-- /report -->)", re.DOTALL)


def write(records: Sequence[Record], root: Path) -> list[Path]:
    """Write the tables of all pages under `root` that have some; returns the pages that changed.

    Raises ValueError for a NAME that is no table of the report; nothing is written then.
    """
    changed = {path: text for path, text in rewritten(records, root) if text != path.read_text()}
    for path, text in changed.items():
        path.write_text(text)
    return list(changed)


def rewritten(records: Sequence[Record], root: Path) -> Iterator[tuple[Path, str]]:
    """The pages that have such tables, with the tables that the records give."""
    tables = {table.name: table for part in parts(records) for table in part.section.tables}
    for path in (root / "README.md", *sorted((root / "docs").glob("*.md"))):
        text = path.read_text()
        if MARKED.search(text):
            yield path, _filled(path, text, tables)


def _filled(path: Path, text: str, tables: Mapping[str, Table]) -> str:
    def anew(found: re.Match[str]) -> str:
        return found[1] + _rows(path, found[2], tables) + found[4]

    return MARKED.sub(anew, text)


def _rows(path: Path, name: str, tables: Mapping[str, Table]) -> str:
    if name not in tables:
        raise ValueError(f"{path}: found the mark of {name!r}, expected a table of the report: {', '.join(tables)}")
    return "".join(f"{line}\n" for line in markdown.rows(tables[name]))
