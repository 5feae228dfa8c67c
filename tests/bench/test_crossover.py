"""The command on small sizes: every contender has a record whose section can be made; what is asked for is what runs."""

from types import SimpleNamespace

import pytest

from bench import crossover, report
from bench.__main__ import main
from bench.crossover_costs import Size
from bench.crossover_points import OURS, WORKS, Point
from bench.sections.crossover import section
from tests.support import bench_command

SMALL = ["--quick", "--repeat", "1"]


@pytest.fixture(scope="module")
def measured(tmp_path_factory):
    """Records of ours, of both works; rivals of PyTorch are asked for in a test of their own."""
    asked = [part for one in OURS for part in ("--only", one)]
    return records_of(tmp_path_factory.mktemp("crossover"), *asked)


def records_of(folder, *asked):
    return [vars(one) for one in bench_command.measured("crossover", folder, *SMALL, *asked)[1]]


def test_every_contender_is_measured_at_every_small_size(measured):
    for work, sizes in (("output", 3), ("step", 2)):
        for one in OURS:
            found = [
                record for record in measured if (record["contender"], record["work"]) == (one, f"crossover.{work}")
            ]
            assert len(found) == sizes and all(record["value"] > 0 and record["checked"] for record in found)


def test_a_section_is_made_of_them(measured):
    pytest.importorskip("altair")
    made = section(measured)
    assert {"crossover_points", "crossover_model", "crossover_regions", "crossover_from"} <= {
        one.name for one in made.tables
    }
    assert any(text.startswith("**Where the tree takes less time**") for text in made.answer)


def test_the_report_of_tables_reads_them(measured):
    text = report.tables(measured)
    assert "### crossover.output" in text and "| tree in batches |" in text


def test_rivals_of_pytorch_stand_beside_ours(tmp_path):
    pytest.importorskip("torch")
    records = records_of(tmp_path, "--only", "output", "--only", "torch adaptive")
    assert {one["work"] for one in records} == {"crossover.output"} and len(records) == 3
    assert all(one["who"].startswith("torch ") and "contender" not in one["params"] for one in records)


def test_what_is_not_known_is_refused(capsys):
    assert main(["crossover", *SMALL, "--only", "forest"]) == 2
    assert "--only: found 'forest', expected some of output, step, full" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("only", "names"), [((), None), (("step",), ()), (("output", "tree"), ("tree",)), (("head",), ("head",))]
)
def test_who_is_chosen(only, names, monkeypatch):
    monkeypatch.setattr(crossover, "peer", lambda name: SimpleNamespace())
    found = crossover.chosen(Point("output", Size(1_000, 16, 32), 1), only)
    assert found == list(WORKS["output"] if names is None else names)


def test_without_pytorch_its_rivals_are_not_there(monkeypatch):
    monkeypatch.setattr(crossover, "peer", lambda name: None)
    assert crossover.chosen(Point("output", Size(1_000, 16, 32), 1), ()) == list(OURS)


def test_a_wrong_result_ends_its_contest_alone(tmp_path, capsys):
    def wrong():
        raise AssertionError("the loss does not fall")

    one = {"contender": "tree", "params": {"batch": 1}, "value": 1.0, "spread": 0.0}
    todo = [crossover.Contest("first", 1, wrong), crossover.Contest("second", 1, lambda: [one])]
    path = tmp_path / "results.jsonl"
    assert crossover.hold(todo, str(path)) == ["first"]
    assert len(path.read_text().splitlines()) == 1
    assert "not timed: first: the loss does not fall" in capsys.readouterr().out
