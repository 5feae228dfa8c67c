"""Tables between marks are the report's; all else of a page stays. Those of the committed pages are the committed report's."""

import json

import pytest

from bench import pages, report
from bench.__main__ import main
from tests.support.crossover_records import planted

pytest.importorskip("altair")

PAGE = "before\n<!-- report: crossover_short_output -->\n{}<!-- /report -->\nbetween | a | table |\n"


@pytest.fixture
def root(tmp_path):
    (tmp_path / "docs").mkdir()
    (tmp_path / "README.md").write_text(PAGE.format("| old |\n"))
    (tmp_path / "docs" / "plain.md").write_text("no mark\n")
    return tmp_path


def test_a_table_is_written_between_its_marks_and_nothing_else(root):
    assert pages.write(planted(), root) == [root / "README.md"]
    before, *rows, mark, after = (root / "README.md").read_text().splitlines()[1:]
    assert before == "<!-- report: crossover_short_output -->" and mark == "<!-- /report -->"
    assert after == "between | a | table |" and (root / "docs" / "plain.md").read_text() == "no mark\n"
    assert rows[0] == "| classes | full | torch full | tree |" and rows[1] == "| ---: | ---: | ---: | ---: |"
    assert [row.split(" | ")[0] for row in rows[2:]] == ["| 1,000", "| 10,000", "| 100,000", "| 1,000,000"]
    assert pages.write(planted(), root) == []


def test_a_mark_of_no_table_is_refused_and_nothing_is_written(root):
    other = root / "docs" / "a.md"
    other.write_text(PAGE.format(""))
    last = root / "docs" / "b.md"
    last.write_text("<!-- report: nothing -->\n<!-- /report -->\n")
    with pytest.raises(
        ValueError, match=r"b\.md: found the mark of 'nothing', expected a table of the report: crossover_short"
    ):
        pages.write(planted(), root)
    assert other.read_text() == PAGE.format("")


def test_the_command(root, monkeypatch, capsys):
    results = root / "results.jsonl"
    results.write_text("".join(f"{json.dumps(one | {'env': {}})}\n" for one in planted()))
    monkeypatch.setattr(pages, "ROOT", root)
    assert main(["pages", str(results)]) == 0
    assert capsys.readouterr().out == f"{root / 'README.md'}\n"
    with pytest.raises(SystemExit):
        main(["pages"])
    assert "pages: found no files, expected the results.jsonl of a report" in capsys.readouterr().err


def test_the_committed_pages_have_the_tables_of_the_committed_report():
    records = report.read([str(pages.ROOT / "docs" / "report" / "results.jsonl")])
    found = list(pages.rewritten(records, pages.ROOT))
    assert [path.name for path, text in found if text != path.read_text()] == []
    assert {path.name for path, _ in found} >= {"README.md", "measurements.md"}
