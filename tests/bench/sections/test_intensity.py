"""The section of arithmetic intensity, of records made by hand."""

import pytest

from bench.sections.intensity import HEADER, WORK, section


def record(stage, intensity, value, peak=100e9, bandwidth=20e9):
    roof = min(peak, intensity * bandwidth)
    found = {"work": WORK, "params": {"stage": stage, "sizes": "some"}, "value": value, "interval": [value, value]}
    found |= {"threads": 2, "operations": intensity * 1e6, "moved": 1e6, "intensity": intensity}
    return found | {"peak": peak, "bandwidth": bandwidth, "roof": roof, "roof_share": value / roof}


RECORDS = [record("units step", 0.5, 8e9), record("tree step", 4.0, 40e9), record("dense forward", 100.0, 90e9)]


def test_a_stage_is_bound_by_what_is_lower():
    table = section(RECORDS).tables[0]
    rows = [dict(zip(HEADER, row, strict=True)) for row in table.rows]
    assert [row["bound by"] for row in rows] == ["memory", "memory", "arithmetic"]
    assert [row["share of the roof"] for row in rows] == [0.8, 0.5, 0.9]
    assert [row["operations a fetch"] for row in rows] == [2, 16, 400]


def test_the_answer_names_who_waits_for_memory_and_who_has_what_the_seed_asks_for():
    said = section(RECORDS).answer[0]
    assert "fewer than 5 operations a byte is bound by memory: units step, tree step." in said
    assert "2.5 to 12.5 a byte of float32; tree step, dense forward have 10 a fetch or more" in said


def test_the_roof_breaks_where_memory_is_as_fast_as_arithmetic():
    pytest.importorskip("altair")
    band, line, points = section(RECORDS).figures[0].chart.to_dict()["layer"]
    assert band["data"]["values"] == [{"low": 2.5, "high": 12.5}]
    assert line["data"]["values"] == [
        {"intensity": 0.25, "rate": 5e9},
        {"intensity": 5.0, "rate": 100e9},
        {"intensity": 200.0, "rate": 100e9},
    ]
    assert len(points["data"]["values"]) == 3


def test_without_records_it_says_so():
    assert section([]).gaps == ["No stage has been measured."]
