"""Ratios come from records, tables from ratios; the command line names what it can do."""

import pytest

from bench.__main__ import main
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
    records = [
        record(bandwidth_share=0.942),
        record("PyTorch 2", 1.6e9),
        record(value=2.5e6, params={"units": 14161, "batch": 8}),
        record(value=3.0, work="words.cbow", unit="words/s", params={}),
    ]
    assert (
        report.tables(records)
        == """\
### units.step

| units | batch | threads | ours | bandwidth | PyTorch 2 |
| --- | --- | --- | --- | --- | --- |
| 9 | 1 | 2 | **4 G params/s ± 2%** | 94% | 1.6 G params/s ± 2% (2.5 x) |
| 14,161 | 8 | 2 | **2.5 M params/s ± 2%** |  |  |

± is half the distance from the slowest sample to the fastest, as a share of the median.
Measured on Chip, commit abc.

### words.cbow

| threads | ours |
| --- | --- |
| 2 | **3 words/s ± 2%** |

± is half the distance from the slowest sample to the fastest, as a share of the median.
Measured on Chip, commit abc."""
    )


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["nothing"], "NAME: found 'nothing', expected one of "),
        (["words", "--threads", "0"], "--threads: found 0, expected 1 or more"),
        (["words", "--repeat", "-1"], "--repeat: found -1, expected 1 or more"),
        (["words", "stray"], "words takes no files: stray"),
        (["words", "--json", "/"], "--json /: Is a directory"),
        (["report"], "report: found no files, expected the .jsonl files"),
        (["report", "/no/such.jsonl"], "No such file or directory: '/no/such.jsonl'"),
    ],
)
def test_bad_arguments_are_named(capsys, arguments, message):
    with pytest.raises(SystemExit) as stopped:
        main(arguments)
    assert stopped.value.code == 2
    assert message in capsys.readouterr().err
