"""hybrid/sweep/table.py: the trials as Markdown."""

from hybrid.sweep.records import Record
from hybrid.sweep.table import markdown


def test_a_row_a_trial():
    records = [
        Record(2, None, {"rate": 0.1, "serial": True}, value=9.23456, seconds=1.5),
        Record(1, None, {"rate": 0.02, "serial": False}, cause="a | b"),
    ]
    assert markdown(records, "perplexity", "epochs").splitlines() == [
        "| trial | rate | serial | perplexity | seconds | failed |",
        "| ----- | ---- | ------ | ---------- | ------- | ------ |",
        "| 2     | 0.1  | true   | 9.2346     | 1.5     |        |",
        "| 1     | 0.02 | false  |            |         | a \\| b |",
    ]


def test_lengths_are_shown_where_there_are_some():
    found = markdown([Record(1, 3, {"rate": 0.1}, value=2.0, seconds=1.0)], "loss", "epochs").splitlines()
    assert found[0] == "| trial | epochs | rate | loss | seconds |" and "failed" not in found[0]
