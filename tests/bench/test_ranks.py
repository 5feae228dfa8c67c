"""What ranks measured is kept sample by sample and judged."""

import pytest

from bench.step import ranks


def found(work, samples):
    return ranks.kept(work, {"ranks": 2, "bytes": 1_000}, samples, 1_000, "bytes/s")


def test_every_sample_is_kept():
    one = found("message", [0.001, 0.002, 0.004])
    assert one["samples"] == [1e6, 5e5, 2.5e5] and one["seconds"] == 0.002 and one["value"] == 5e5
    assert (one["bench"], one["params"]) == ("ranks", {"ranks": 2, "bytes": 1_000})


def test_the_table_has_what_was_measured_and_says_who_shares_cores():
    records = [found("message", [0.001]), found("alltoall", [0.002])]
    assert ranks.message_table(records, 1).startswith("2 ranks, 1 cores; ranks that share a core wait")
    lines = ranks.message_table(records, 2).splitlines()
    assert lines[0] == "2 ranks, 2 cores:"
    assert lines[-2:] == ["| message | 1,000 | 1000.0 | 0.001 | 0% |", "| alltoall | 1,000 | 2000.0 | 0.0005 | 0% |"]


@pytest.mark.parametrize(("tick", "judged"), [(1.09, "met"), (1.11, "missed")])
def test_the_bar_is_of_the_flat_layer(tick, judged):
    records = [{"params": {"ranks": 2}, "samples": [1 / seconds]} for seconds in (tick, 1.0, 0.5)]
    row = ranks.tick_row("flat210m", records)
    assert f"{tick:.2f}, {tick / 0.5:.2f}" in row and f"compute: {judged}" in row
    assert "bar" not in ranks.tick_row("small", records)
