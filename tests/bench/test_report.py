"""Ratios come from records, tables from ratios."""

import pytest

from bench.harness import report
from tests.support.records import write


def record(who="ours", value=4e9, work="units.step", unit="params/s", threads=2, params=None, cpu="Chip", **more):
    made = {"device": "cpu", "commit": "abc", "env": {"cpu": cpu}, "spread": 0.04, "samples": [value], "value": value}
    made |= {"work": work, "who": who, "unit": unit, "threads": threads}
    return made | {"params": {"units": 9, "batch": 1} if params is None else params} | more


def test_what_measures_nothing_is_left_out(tmp_path):
    smoke = {"bench": "gpu_smoke", "name": "rows.gather", "state": "ok"}
    path = write(tmp_path / "one.jsonl", [smoke, record()])
    assert report.read([path]) == [record()]


def test_a_peer_at_other_work_is_no_rival():
    ours = record(params={"classes": 10, "mode": "batch"})
    peers = [
        record("same", params={"classes": 10, "mode": "batch"}),
        record("silent about mode", params={"classes": 10}),
        record("other mode", params={"classes": 10, "mode": "deterministic"}),
        record("other size", params={"classes": 11}),
        record("other threads", params={"classes": 10}, threads=1),
        record("other machine", params={"classes": 10}, cpu="Else"),
        record("other work", params={"classes": 10}, work="tree.step"),
        ours,
    ]
    assert list(report.rivals(ours, peers)) == ["same", "silent about mode"]


def test_of_equal_measurements_the_last_counts(tmp_path):
    first, second = [record(value=1.0), record("peer", 5.0)], [record(value=2.0)]
    paths = [write(tmp_path / "a", first), write(tmp_path / "b", second)]
    assert [(one["who"], one["value"]) for one in report.read(paths)] == [("ours", 2.0), ("peer", 5.0)]


@pytest.mark.parametrize("line", ["not json", "[1]", '{"work": "units.step"}', ""])
def test_a_line_that_is_no_record_is_named(tmp_path, line):
    path = write(tmp_path / "bad.jsonl", [record()])
    path.write_text(f"{path.read_text()}{line}\n")
    with pytest.raises(ValueError, match=r"bad.jsonl:2: not a record"):
        report.read([str(path)])


def test_the_table_of_a_work():
    wide = record(value=2.5e6, params={"units": 14161, "batch": 8})
    lines = report.tables([record(bandwidth_share=0.942), record("PyTorch 2", 1.6e9), wide]).splitlines()
    assert lines[4] == "| 9 | 1 | 2 | **4 G params/s ± 2%** | 94% | 1.6 G params/s ± 2% (2.5 x) |"
    assert lines[5] == "| 14,161 | 8 | 2 | **2.5 M params/s ± 2%** |  |  |"
