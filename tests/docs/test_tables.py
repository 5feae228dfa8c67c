"""Tables of pages that `python -m bench report` writes have the rows that it writes of the committed records."""

from pathlib import Path

from bench.harness import report

from .pages import PAGES, ROOT

RESULTS = ROOT / "bench" / "results" / "summary.jsonl"
LEAST = 6  # tables that are its own; where one has another header, it is no longer looked at, and this fails


def tables(text: str) -> list[list[str]]:
    """The lines of every table."""
    found: list[list[str]] = [[]]
    for line in text.splitlines():
        if line.startswith("|"):
            found[-1].append(line)
        elif found[-1]:
            found.append([])
    return [table for table in found if table]


def written() -> dict[str, set[str]]:
    """By header: all rows that the records give."""
    found: dict[str, set[str]] = {}
    records = report.read([str(RESULTS)])
    for on_gpu in (False, True):  # a table is of one machine
        ones = [one for one in records if ("gpu" in one["env"]) is on_gpu]
        for header, _, *rows in tables(report.tables(ones)):
            found.setdefault(header, set()).update(rows)
    return found


def differing(page: Path, rows: dict[str, set[str]]) -> tuple[int, list[str]]:
    """How many tables of a page are of a report, and the rows of them that no record gives."""
    mine = [table for table in tables(page.read_text()) if table[0] in rows]
    return len(mine), [row for header, _, *own in mine for row in own if row not in rows[header]]


def test_tables_of_pages_are_those_of_the_records():
    rows = written()
    found = {page: differing(page, rows) for page in PAGES}
    assert {page.name: wrong for page, (_, wrong) in found.items() if wrong} == {}
    assert sum(number for number, _ in found.values()) >= LEAST


def test_a_figure_that_was_changed_by_hand_is_found(tmp_path):
    page = tmp_path / "page.md"
    page.write_text("text\n\n| a | b |\n| --- | --- |\n| 1 | 2 |\n| 1 | 3 |\n\n| c |\n| --- |\n| 4 |\n")
    assert differing(page, {"| a | b |": {"| 1 | 2 |"}}) == (1, ["| 1 | 3 |"])
