"""A release's file is small and read as records are; the curve is chained by hand; the committed page is that of the files."""

import json

import pytest

from bench import history, report
from bench.__main__ import main
from bench.history import Point, curve

from .test_compare import around, record


def of(middle, **more):
    return [record(around(middle), **more), record(around(middle / 4), who="torch 2.13.0+cpu bmm", **more)]


@pytest.fixture
def folder(tmp_path):
    """Three releases: 2 and then 1.5 times as fast; a benchmark that comes with the second, and one on another machine."""
    at = tmp_path / "history"
    at.mkdir()
    history.keep("0.9.0", of(1.0), at)
    history.keep("0.10.0", of(2.0) + of(5.0, work="tree.step"), at)
    moved = [one | {"who": one["who"].replace("2.13.0+cpu", "2.14.1")} for one in of(3.0)]
    history.keep("0.11.0", moved + of(9.0, work="tree.step", cpu="Another"), at)
    return at


def test_a_curve_is_chained_and_knows_peers_of_other_versions(folder):
    found = {(point.work, point.release): point for point in curve(history.releases(folder))}
    assert found.keys() == {("units.step", name) for name in ("0.9.0", "0.10.0", "0.11.0")} | {("tree.step", "0.10.0")}
    first, *others = (found["units.step", name] for name in ("0.9.0", "0.10.0", "0.11.0"))
    assert first == Point("units.step", "0.9.0", 1.0, 0, 1.0)
    assert [(one.ours, one.figures, one.peers) for one in others] == [
        (pytest.approx(2.0), 1, pytest.approx(2.0)),
        (pytest.approx(3.0), 1, pytest.approx(3.0)),
    ]


def test_a_release_that_lacks_a_benchmark_is_passed_over(folder):
    history.keep("0.12.0", of(1.0, work="other"), folder)
    history.keep("0.13.0", of(6.0), folder)
    last = [point for point in curve(history.releases(folder)) if point.work == "units.step"][-1]
    assert (last.release, last.ours) == ("0.13.0", pytest.approx(6.0))


def test_a_file_keeps_what_a_comparison_needs(folder):
    lines = (folder / "0.9.0.jsonl").read_text().splitlines()
    assert len(lines) == 2 and "commit" in json.loads(lines[0])
    ours, _ = report.read([str(folder / "0.9.0.jsonl")])
    assert ours["samples"] == around(1.0) and ours["env"] == {"cpu": "Chip"}


@pytest.mark.parametrize(
    ("release", "records", "message"),
    [
        ("newest", of(1.0), "--release: found 'newest', expected a version, as 0.2.0"),
        ("1.0", [{"work": "all.step"}], "release 1.0: none of 1 records has samples of a clock"),
    ],
)
def test_what_no_curve_could_be_made_of_is_refused(tmp_path, release, records, message):
    with pytest.raises(ValueError) as refused:
        history.keep(release, records, tmp_path)
    assert str(refused.value) == message and not list(tmp_path.iterdir())


def test_the_command_keeps_a_release_and_writes_the_page(monkeypatch, tmp_path, folder, capsys):
    docs = tmp_path / "docs"
    (docs / "images").mkdir(parents=True)
    monkeypatch.setattr(history, "HERE", folder)
    monkeypatch.setattr(history, "DOCS", docs)
    results = tmp_path / "results.jsonl"
    results.write_text("".join(f"{json.dumps(one)}\n" for one in of(12.0)))
    assert main(["history", "--release", "1.0", str(results)]) == 0
    assert capsys.readouterr().out.split() == [
        str(folder / "1.0.jsonl"), str(docs / "history.md"), str(docs / "images" / "history.png")
    ]  # fmt: skip
    page = (docs / "history.md").read_text()
    assert "| units.step | 1.0 | 12.00 | 1 | 12.00 |" in page and "1 other benchmarks, which begin at 1" in page
    assert (docs / "images" / "history.png").read_bytes().startswith(b"\x89PNG")
    with pytest.raises(SystemExit):
        main(["history", "--release", "1.1"])
    assert "FILE... and --release VERSION go together" in capsys.readouterr().err


def test_the_committed_page_is_that_of_the_committed_files():
    assert (history.DOCS / history.PAGE).read_text() == history.page(curve(history.releases(history.HERE)))
