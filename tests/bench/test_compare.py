"""Two files compared: ratios by hand, doubt is no verdict, peers are no regression."""

import pytest

from bench.__main__ import main
from bench.harness import report
from tests.support.records import write


def record(samples, who="ours", work="units.step", unit="params/s", cpu="Chip", **more):
    made = {"work": work, "who": who, "unit": unit, "samples": samples, "value": sorted(samples)[len(samples) // 2]}
    made |= {"params": {"batch": 1}, "threads": 2, "device": "cpu", "env": {"cpu": cpu}, "commit": "abc", "spread": 0.0}
    return made | more


def around(middle):
    return [middle * share for share in (0.98, 0.99, 1, 1.01, 1.02, 0.985, 1.015)]


@pytest.fixture
def files(tmp_path):
    def both(before, after):
        return [str(write(tmp_path / f"{name}.jsonl", found)) for name, found in (("before", before), ("after", after))]

    return both


@pytest.mark.parametrize(
    ("unit", "ratio", "verdict"), [("params/s", 1.5, "better"), ("bytes", 1 / 1.5, "worse"), ("s", 1 / 1.5, "worse")]
)
def test_a_ratio_is_how_many_times_as_good_the_second_is(unit, ratio, verdict):
    (change,) = report.changes([record(around(4.0), unit=unit)], [record(around(6.0), unit=unit)])
    assert change.ratio == pytest.approx(ratio) and change.interval[0] < ratio < change.interval[1]
    assert change.verdict(0.05) == verdict


@pytest.mark.parametrize(
    ("after", "tolerance", "verdict"),
    [
        (around(0.90), 0.05, "worse"),
        (around(0.90), 0.15, ""),  # within the tolerance
        (around(0.96), 0.05, ""),
        ([0.5, 0.6, 0.7, 0.8, 1.2, 1.3, 1.4], 0.05, ""),  # lower, but the interval reaches above
        ([0.5], 0.05, ""),  # one sample says nothing
        (around(1.10), 0.05, "better"),
    ],
)
def test_only_an_interval_wholly_beyond_the_tolerance_is_a_verdict(after, tolerance, verdict):
    (change,) = report.changes([record(around(1.0))], [record(after)])
    assert change.verdict(tolerance) == verdict


def test_figures_of_other_work_sizes_or_machines_are_not_compared():
    before = [record(around(1.0)), record(around(1.0), work="tree.step"), {**record([1.0]), "params": {"batch": 8}}]
    after = [record(around(1.0), cpu="Else"), record(around(2.0), work="tree.step"), record([1.0], threads=1)]
    del after[2]["samples"]  # a figure without a clock
    assert [change.after["work"] for change in report.changes(before, after)] == ["tree.step"]


def test_the_command_marks_what_got_worse(files, capsys):
    paths = files(
        [record(around(4e9)), record(around(2e9), who="torch 2"), record(around(1e3), work="tree.step")],
        [record(around(2e9)), record(around(2e9), who="torch 2"), record(around(3e3), work="tree.step")],
    )
    assert main(["compare", *paths]) == 1
    table, said = capsys.readouterr().out.rstrip().split("\n\n")
    ours, peer, tree = table.splitlines()[2:]
    assert "| 4 G params/s | 2 G params/s | 0.5 (0.4" in ours and ours.endswith("| **worse** |")
    assert peer.endswith("|  |") and tree.endswith("| better |")
    assert said == (
        "of 2 figures of ours 1 worse and 1 better by more than 5%; ours 1.75 times as good (median of 2); "
        "peers 1 times as good (median of 1)"
    )


def test_files_without_a_common_figure_are_refused(files, capsys):
    with pytest.raises(SystemExit):
        main(["compare", *files([record([1.0])], [record([1.0], cpu="Else")])])
    assert "no figure is in both files" in capsys.readouterr().err
