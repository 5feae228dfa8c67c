"""The instrument itself: what is wrong is not timed, rivals take turns, every sample is kept."""

import itertools
import json
import statistics
import sys
import time

import pytest

from bench.harness import measure, quiet
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


def test_a_rival_that_fails_is_left_out_on_a_first_contact_alone(clock, monkeypatch, capsys):
    def wrong():
        raise ValueError("differs")

    def rivals(first=lambda: None, second=wrong):
        return [
            work(lasting(clock, [1] * 5), first),
            work(lasting(clock, [1] * 5), second, "peer"),
            work(lasting(clock, [2] * 5), who="last"),
        ]

    with pytest.raises(ValueError, match="differs"):
        measure.measure(rivals(), repeat=3)
    monkeypatch.setattr(measure, "FIRST", True)
    works = rivals()
    records = measure.measure(works, repeat=3)
    assert [record["who"] for record in records] == ["ours", "last"] == [one.who for one in works]
    assert "peer is left out: ValueError: differs" in capsys.readouterr().out
    with pytest.raises(ValueError, match="differs"):  # without ours there is no contest
        measure.measure(rivals(wrong), repeat=3)


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


def test_turns_are_repeated_so_often_and_no_more_and_then_marked(clock, capsys):
    restless = [1, 1, *[1, 2, 4], *[1, 2, 3], *[1, 2, 5]]
    records = measure.measure([work(lasting(clock, restless))], repeat=3)  # a fourth round would have no seconds left
    (ours,) = records
    assert ours["samples"] == pytest.approx([10, 5, 10 / 3]) and len(ours["set_aside"]) == 3 * (measure.ROUNDS - 1)
    measure.show(records)
    assert "(noisy)" in capsys.readouterr().out


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


def test_a_record_that_says_no_load_gets_that_since_the_last_one(tmp_path, monkeypatch):
    path, lap = tmp_path / "results.jsonl", quiet.Load(2, 0.25, 0.0)
    monkeypatch.setattr(quiet.laps, "lap", lambda: lap)
    others = {"cores": 2, "others": 0.0, "stolen": 0.0}
    measure.append(str(path), [{"who": "own clock"}, {"who": "untold", "load": None}, {"who": "told", "load": others}])
    loads = [json.loads(line)["load"] for line in path.read_text().splitlines()]
    assert loads == [lap._asdict(), lap._asdict(), others]


def test_the_share_of_the_bandwidth_where_it_bounds(clock):
    works = [work(lasting(clock, [1, 1, 2]), moved=30.0, threads=2), work(lasting(clock, [1, 1, 2]), who="peer 1.0")]
    ours, peer = measure.measure(works, repeat=1, bandwidth=20.0)
    assert ours["bandwidth_share"] == 30 / 2 / 20
    assert "bandwidth_share" not in peer
    assert ours.keys() - {"seconds"} == KEYS | {"bandwidth_share"}
    assert (ours["bench"], ours["work"], ours["who"], ours["threads"]) == ("fake", "fake.step", "ours", 2)
    assert ours["checked"] is True


def test_records_are_appended_one_a_line(tmp_path, clock):
    path = tmp_path / "results.jsonl"
    records = measure.measure([work(lasting(clock, [1, 1, 2])), work(lasting(clock, [1, 1, 4]), who="peer")], repeat=1)
    measure.append(str(path), records)
    measure.append(str(path), records[:1])
    measure.append(None, records)
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    assert [line["who"] for line in lines] == ["ours", "peer", "ours"]
    assert lines[:2] == records
    assert {"cpu", "cores", "os", "python", "numpy", "numba"} <= lines[0]["env"].keys()


def test_a_missing_peer_is_said_once(monkeypatch, capsys):
    monkeypatch.setitem(sys.modules, "no_such_peer", None)
    assert measure.peer("no_such_peer") is None and measure.peer("no_such_peer") is None
    assert capsys.readouterr().out.count("no_such_peer is not measured") == 1


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
