"""The report is made of results.jsonl alone: whatever a section says is on it as text, every number in a table and its file."""

import html.parser
import re

import pytest

from bench.harness import report
from bench.report import page
from bench.report.page import undone
from bench.report.section import Table
from tests.support import records
from tests.support.crossover_records import planted

pytest.importorskip("markdown_it")

ROWS = [["<b>", 1234567], ["other", 0.000123456], ["none", None]]
TABLE = Table("t", "Some | numbers", ["who", "value"], ROWS, "python -m x")


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    made = tmp_path_factory.mktemp("report")
    records.write(made / "results.jsonl", records.every_section())
    page.write(made)
    return made


class Text(html.parser.HTMLParser):
    """What is fetched from elsewhere, and the names that links go to."""

    def __init__(self):
        super().__init__()
        self.fetched, self.links, self.ids = [], [], []

    def handle_starttag(self, tag, attrs):
        given = dict(attrs)
        if tag in ("script", "img", "link", "iframe"):
            self.fetched += [given[name] for name in ("src", "href") if name in given]
        if tag == "a":
            self.links.append(given["href"])
        if "id" in given:
            self.ids.append(given["id"])


def test_the_page_needs_no_network_and_its_links_lead_somewhere(folder):
    seen = Text()
    text = (folder / "report.html").read_text()
    seen.feed(text)
    assert text.count("<svg role") == len(list((folder / "figures").glob("*.svg"))) > 3
    assert all(not address.startswith(("http", "//")) for address in seen.fetched)
    assert len(seen.ids) == len(set(seen.ids))
    for link in seen.links:
        there = link[1:] in seen.ids if link.startswith("#") else (folder / link).exists()
        assert there or link.startswith("http"), link


def test_gaps_are_told_with_the_reason(folder):
    assert undone("ranks", records.every_section()) == ["ranks: skipped, mpi4py is not installed"]
    assert "ranks: skipped, mpi4py is not installed" in (folder / "report.html").read_text()
    assert "* ranks: skipped, mpi4py is not installed" in (folder / "report.md").read_text()
    assert undone("table7", records.every_section()) == ["table7 of PyTorch's nets: not run"]


def test_markdown_has_every_picture_and_every_table(folder):
    text = (folder / "report.md").read_text()
    for link in re.findall(r"\]\(((?:figures|tables)/[^)]*)\)", text):
        assert (folder / link).exists()
    assert len(re.findall(r"!\[", text)) == len(list((folder / "figures").glob("*.svg")))
    rows = page._table(TABLE)
    assert rows[0] == "**Some | numbers**" and rows[3] == "| --- | ---: |"
    assert rows[4:7] == ["| <b> | 1,234,567 |", "| other | 0.000123 |", "| none | \u2013 |"]


def test_a_table_is_written_between_its_marks_and_nothing_else(tmp_path):
    read, plain = tmp_path / "README.md", tmp_path / "docs" / "plain.md"
    plain.parent.mkdir()
    plain.write_text("no mark\n")
    read.write_text(
        "before\n<!-- report: crossover_short_output -->\n| old |\n<!-- /report -->\nbetween | a | table |\n"
    )
    assert page.write_pages(planted(), tmp_path) == [read]
    before, *rows, mark, after = read.read_text().splitlines()[1:]
    assert before == "<!-- report: crossover_short_output -->" and mark == "<!-- /report -->"
    assert after == "between | a | table |" and plain.read_text() == "no mark\n"
    assert rows[0] == "| classes | full | torch full | tree |" and rows[1] == "| ---: | ---: | ---: | ---: |"
    assert [row.split(" | ")[0] for row in rows[2:]] == ["| 1,000", "| 10,000", "| 100,000", "| 1,000,000"]
    assert page.write_pages(planted(), tmp_path) == []


def test_the_committed_pages_have_the_tables_of_the_committed_report():
    found = list(page.rewritten(report.read([str(page.ROOT / "docs" / "report" / "results.jsonl")]), page.ROOT))
    assert [path.name for path, text in found if text != path.read_text()] == []
    assert {path.name for path, _ in found} >= {"which-output-layer.md", "measurements.md"}
