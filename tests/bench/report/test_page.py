"""The report is made of results.jsonl alone: whatever a section says is on it as text, every number in a table and its file."""

import html.parser
import json
import re

import pytest

from bench.__main__ import main
from bench.harness import report
from bench.report import page
from bench.report.page import Part, undone
from bench.report.section import Figure, Section, Table, shown
from tests.support import records
from tests.support.crossover_records import planted

pytest.importorskip("markdown_it")

ROWS = [["<b>", 1234567], ["other", 0.000123456], ["none", None]]
TABLE = Table("t", "Some | numbers", ["who", "value"], ROWS, "python -m x")
PAGE = "before\n<!-- report: crossover_short_output -->\n{}<!-- /report -->\nbetween | a | table |\n"


def figure(name="some", **more):
    points = [{"who": who, "x": x, "y": x + 1, "low": x, "high": None} for who in "ab" for x in (1, 2)]
    return Figure(name, "Some points", "It rises.", "t", points, "x", "y", **more)


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


def test_it_is_the_same_from_the_same_records(folder, tmp_path):
    (tmp_path / "results.jsonl").write_bytes((folder / "results.jsonl").read_bytes())
    page.write(tmp_path)
    for name in ("report.html", "report.md"):
        assert (tmp_path / name).read_bytes() == (folder / name).read_bytes(), name


def test_gaps_are_told_with_the_reason(folder):
    assert undone("ranks", records.every_section()) == ["ranks: skipped, mpi4py is not installed"]
    assert "ranks: skipped, mpi4py is not installed" in (folder / "report.html").read_text()
    assert "* ranks: skipped, mpi4py is not installed" in (folder / "report.md").read_text()
    assert undone("table7", records.every_section()) == ["table7 of PyTorch's nets: not begun yet"]


def test_markdown_has_every_picture_and_every_table(folder):
    text = (folder / "report.md").read_text()
    for link in re.findall(r"\]\(((?:figures|tables)/[^)]*)\)", text):
        assert (folder / link).exists()
    assert len(re.findall(r"!\[", text)) == len(list((folder / "figures").glob("*.svg")))
    rows = page._table(TABLE)
    assert rows[0] == "**Some | numbers**" and rows[3] == "| --- | ---: |" and rows[4] == "| <b> | 1,234,567 |"


def test_what_looks_like_html_is_text(tmp_path):
    section = Section("A < B", ["<script>alert(1)</script>", "**bold**"], tables=[TABLE])
    made = page.as_html(page.markdown(page.facts_of([]), [Part("some", section, ["a <gap>"])]), tmp_path)
    assert "<script>alert" not in made and "&lt;script&gt;alert" in made and "<strong>bold</strong>" in made
    assert "&lt;b&gt;</td>" in made and "a &lt;gap&gt;" in made and "A &lt; B" in made


def test_numbers_have_three_digits_on_the_page_and_all_in_the_file(tmp_path):
    found = [shown(cell) for cell in (1234567, 1234.567, 0.000123456, "word", None)]
    assert found == ["1,234,567", "1,235", "0.000123", "word", "\u2013"]
    page.write_csv(TABLE, tmp_path)
    assert (tmp_path / "t.csv").read_text().splitlines() == ["who,value", "<b>,1234567", "other,0.000123456", "none,"]


# Tables in the README and docs


@pytest.fixture
def root(tmp_path):
    (tmp_path / "docs").mkdir()
    (tmp_path / "README.md").write_text(PAGE.format("| old |\n"))
    (tmp_path / "docs" / "plain.md").write_text("no mark\n")
    return tmp_path


def test_a_table_is_written_between_its_marks_and_nothing_else(root):
    assert page.write_pages(planted(), root) == [root / "README.md"]
    before, *rows, mark, after = (root / "README.md").read_text().splitlines()[1:]
    assert before == "<!-- report: crossover_short_output -->" and mark == "<!-- /report -->"
    assert after == "between | a | table |" and (root / "docs" / "plain.md").read_text() == "no mark\n"
    assert rows[0] == "| classes | full | torch full | tree |" and rows[1] == "| ---: | ---: | ---: | ---: |"
    assert [row.split(" | ")[0] for row in rows[2:]] == ["| 1,000", "| 10,000", "| 100,000", "| 1,000,000"]
    assert page.write_pages(planted(), root) == []


def test_a_mark_of_no_table_is_refused_and_nothing_is_written(root):
    other = root / "docs" / "a.md"
    other.write_text(PAGE.format(""))
    (root / "docs" / "b.md").write_text("<!-- report: nothing -->\n<!-- /report -->\n")
    said = r"b\.md: found the mark of 'nothing', expected a table of the report: crossover_short"
    with pytest.raises(ValueError, match=said):
        page.write_pages(planted(), root)
    assert other.read_text() == PAGE.format("")


def test_the_command_that_writes_pages(root, monkeypatch, capsys):
    results = root / "results.jsonl"
    results.write_text("".join(f"{json.dumps(one | {'env': {}})}\n" for one in planted()))
    monkeypatch.setattr(page, "ROOT", root)
    assert main(["pages", str(results)]) == 0
    assert capsys.readouterr().out == f"{root / 'README.md'}\n"
    with pytest.raises(SystemExit):
        main(["pages"])
    assert "pages: found no files, expected the results.jsonl of a report" in capsys.readouterr().err


def test_the_committed_pages_have_the_tables_of_the_committed_report():
    found = list(page.rewritten(report.read([str(page.ROOT / "docs" / "report" / "results.jsonl")]), page.ROOT))
    assert [path.name for path, text in found if text != path.read_text()] == []
    assert {path.name for path, _ in found} >= {"which-output-layer.md", "measurements.md"}
