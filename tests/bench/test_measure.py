"""The instrument itself: what is wrong is not timed, rivals take turns, every sample is kept."""

import itertools
import statistics
import time

import pytest

from bench.harness import measure
from bench.harness.measure import Work

KEYS = {"bench", "work", "who", "params", "unit", "value", "samples", "spread", "checked", "threads", "device"}
KEYS |= {"commit", "env", "interval", "load"}


@pytest.fixture
def clock(monkeypatch):
    """A clock that works advance themselves."""
    now = [100.0]
    monkeypatch.setattr(time, "perf_counter", lambda: now[0])
    return now


def work(run, check=lambda: None, who="ours", **more):
    settings = {"params": {"size": 3}, "amount": 10.0, "unit": "things/s"} | more
    return Work("fake.step", who, run=run, check=check, **settings)


def lasting(clock, seconds):
    """A run that takes these seconds, one after the other."""
    turns = iter(seconds)

    def run():
        clock[0] += next(turns)

    return run


def test_a_wrong_result_is_never_timed():
    runs = []

    def wrong():
        raise AssertionError("differs from the oracle")

    works = [work(lambda: runs.append("a")), work(lambda: runs.append("b"), wrong, "peer")]
    with pytest.raises(AssertionError, match="oracle"):
        measure.measure(works)
    assert runs.count("b") == 1
    assert all(not one.samples for one in works)


def test_every_rival_is_checked_and_warmed_before_turns_are_taken(clock):
    log = []

    def rival(name, warm):
        step = lasting(clock, [1] * 6)
        return work(lambda: log.append(name) or step(), lambda: log.append(f"check {name}"), name, warm=warm)

    measure.measure([rival("ours", 1), rival("peer", 2)], repeat=3)
    assert log == ["ours", "check ours", "ours", "peer", "check peer", "peer", "peer"] + ["ours", "peer"] * 3


def test_where_a_spread_is_wide_all_take_turns_again_and_the_calmer_turns_count(clock):
    restless = lasting(clock, [1, 1, 1, 2, 5, 2, 2, 2.5])
    ours, peer = measure.measure([work(restless), work(lasting(clock, [1] * 8), who="peer")], repeat=3)
    assert ours["samples"] == [5, 5, 4]
    assert ours["set_aside"] == [10, 5, 2]
    assert ours["spread"] == pytest.approx(0.2)
    assert peer["samples"] == peer["set_aside"] == [10, 10, 10]


def test_a_median_has_its_interval_and_one_sample_has_none(clock, capsys):
    ours, peer = (work(lasting(clock, [1, 1, 2, 2.05, 2.1, 2.15, 2.2]), who=who) for who in ("ours", "peer"))
    (record, _) = records = measure.measure([ours, peer], repeat=5)
    assert record["value"] == statistics.median(record["samples"]) and record["seconds"] == pytest.approx(2.1)
    low, high = record["interval"]
    assert "set_aside" not in record and min(record["samples"]) <= low < record["value"] < high <= max(
        record["samples"]
    )
    measure.show(records)
    assert f"({low:.4g} to {high:.4g})" in capsys.readouterr().out
    assert measure.measure([work(lasting(clock, [1, 1, 1]))], repeat=1)[0]["interval"] is None


def test_the_share_of_the_bandwidth_where_it_bounds(clock):
    works = [work(lasting(clock, [1, 1, 2]), moved=30.0, threads=2), work(lasting(clock, [1, 1, 2]), who="peer 1.0")]
    ours, peer = measure.measure(works, repeat=1, bandwidth=20.0)
    assert ours["bandwidth_share"] == 30 / 2 / 20
    assert "bandwidth_share" not in peer
    assert ours.keys() - {"seconds"} == KEYS | {"bandwidth_share"}
    assert (ours["bench"], ours["work"], ours["who"], ours["threads"]) == ("fake", "fake.step", "ours", 2)
    assert ours["checked"] is True


# Intervals


def test_the_interval_of_a_median_by_counting_all_resamples():
    values = [1.0, 2.0, 4.0, 8.0, 16.0]
    medians = sorted(statistics.median(drawn) for drawn in itertools.product(values, repeat=5))
    expected = [medians[round(share * len(medians))] for share in (0.025, 0.975)]
    assert measure.of_median(values) == expected == [1.0, 16.0]
    assert measure.of_median(values) == measure.of_median(values)


def test_the_interval_of_a_ratio_is_that_of_both():
    over, under = [8.5, 9.0, 9.5, 10.0, 10.5, 11.0, 11.5], [3.5, 4.0, 4.5, 5.0, 5.5, 6.0, 6.5]
    low, high = measure.of_ratio(over, under)
    alone = [10 / end for end in reversed(measure.of_median(under))]
    assert low < alone[0] < 2 < alone[1] < high
