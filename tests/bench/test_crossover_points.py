"""The plan: sizes, who is left out and why, who takes turns with whom, and a whole that stays within its time."""

import pytest

from bench.crossover_costs import Size, memory
from bench.crossover_points import LONGEST, SHARE, WORKS, Point, contests, duration, left_out, points, seconds

MACHINE = 25e9  # bytes


def whole(quick):
    """Seconds of all contests of two threads."""
    return sum(
        duration(point, [one for one in WORKS[point.work] if not left_out(one, point, MACHINE)])
        for point in points(quick, 2)
    )


def test_all_of_it_takes_minutes():
    assert whole(quick=False) <= 15 * 60 and whole(quick=True) <= 90


def test_every_width_batch_and_number_of_classes_is_measured_on_one_thread_and_on_all():
    found = points(False, 2)
    assert {one.threads for one in found} == {1, 2} and {one.work for one in found} == {"output", "step"}
    sizes = [one.size for one in found if one.work == "output" and one.threads == 2]
    assert {size.width for size in sizes} == {64, 128, 256, 512} and {size.batch for size in sizes} == {64, 1024, 8192}
    assert {size.classes for size in sizes} == {10**power for power in range(3, 9)}
    assert len(set(found)) == len(found)


def test_one_thread_is_measured_once():
    assert {one.threads for one in points(False, 1)} == {1} and len(set(points(False, 1))) == len(points(False, 1))


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


def test_the_tree_is_measured_at_ten_million_classes_and_brute_force_at_a_hundred_thousand():
    assert left_out("tree", Point("output", Size(10_000_000, 128, 1024), 2), MACHINE) is None
    assert left_out("full", Point("output", Size(100_000, 128, 1024), 2), MACHINE) is None
    assert seconds("full", Point("output", Size(1_000_000, 128, 1024), 2)) > LONGEST


def test_rivals_who_do_not_fit_beside_each_other_are_in_contests_of_their_own():
    size = Size(1_000_000, 512, 64)
    names = WORKS["output"]
    found = contests(Point("output", size, 2), names, MACHINE)
    assert [one for contest in found for one in contest] == list(names) and len(found) > 1
    for contest in found:
        assert sum(memory(one, "output", size) for one in contest) <= SHARE * MACHINE or len(contest) == 1
    assert contests(Point("output", Size(1_000, 128, 64), 2), names, MACHINE) == [list(names)]
