"""The plan: sizes, who is left out and why, who takes turns with whom, and a whole that stays within its time."""

import pytest

from bench.crossover_points import (
    SHARE,
    WORKS,
    Point,
    Size,
    amounts,
    contests,
    cutoffs,
    duration,
    left_out,
    memory,
    points,
)

MACHINE = 25e9  # bytes
SMALL, LARGE = Size(1_000, 128, 64), Size(1_000_000, 128, 64)


def whole(quick):
    """Seconds of all contests of two threads."""
    return sum(
        duration(point, [one for one in WORKS[point.work] if not left_out(one, point, MACHINE)])
        for point in points(quick, 2)
    )


def test_all_of_it_takes_minutes():
    assert whole(quick=False) <= 15 * 60 and whole(quick=True) <= 90


@pytest.mark.parametrize(
    ("contender", "work", "size", "threads", "said"),
    [
        ("full", "output", Size(1_000_000, 128, 1024), 2, "a step is taken to last"),
        ("tree overlapped", "step", Size(1_000, 128, 64), 1, "nothing to overlap"),
        ("tree", "output", Size(10_000_000, 512, 64), 2, "it takes 20.9 GB, of 25"),
    ],
)
def test_who_is_left_out_has_a_reason(contender, work, size, threads, said):
    assert said in left_out(contender, Point(work, size, threads), MACHINE)


def test_rivals_who_do_not_fit_beside_each_other_are_in_contests_of_their_own():
    size = Size(1_000_000, 512, 64)
    names = WORKS["output"]
    found = contests(Point("output", size, 2), names, MACHINE)
    assert [one for contest in found for one in contest] == list(names) and len(found) > 1
    for contest in found:
        assert sum(memory(one, "output", size) for one in contest) <= SHARE * MACHINE or len(contest) == 1
    assert contests(Point("output", Size(1_000, 128, 64), 2), names, MACHINE) == [list(names)]


def test_a_tree_takes_a_logarithm():
    small, large = (amounts("tree", "output", size) for size in (SMALL, LARGE))
    assert 1.7 < large["nodes"] / small["nodes"] < 2  # 13.4 nodes over 7.5
    assert small["missed numbers"] == 0 < large["missed numbers"] < large["numbers"]


def test_an_adaptive_softmax_of_one_band_is_worked_by_hand():
    """1,000 classes: 250 in the head with a slot for the band; the band's vectors are a quarter as wide."""
    found = amounts("torch adaptive", "output", SMALL)
    away = sum(1 / k for k in range(251, 1_001)) / sum(1 / k for k in range(1, 1_001))
    operations = 6 * 64 * (128 * 251 + away * 32 * (128 + 750))
    assert cutoffs(1_000) == [250]
    assert found["operations"] == pytest.approx(operations, rel=1e-3)
    assert found["weights"] == 128 * 251 + 32 * (128 + 750)
    assert amounts("torch adaptive", "output", LARGE)["operations"] < amounts("full", "output", LARGE)["operations"]
