"""Schedules of rates, worked by hand; test_engine.py has runs that stop."""

import pytest

from hybrid.schedule.rates import LEAST, RateSchedule


@pytest.mark.parametrize(
    ("schedule", "warmup", "expected"),
    [
        ("constant", 0, [1, 1, 1, 1, 1, 1, 1, 1]),
        ("constant", 2, [0.5, 1, 1, 1, 1, 1, 1, 1]),
        ("linear", 0, [1, 7 / 8, 6 / 8, 5 / 8, 4 / 8, 3 / 8, 2 / 8, 1 / 8]),
        ("linear", 4, [0.25, 0.5, 0.75, 1, 1, 0.75, 0.5, 0.25]),
        ("cosine", 4, [0.25, 0.5, 0.75, 1, 1, 0.5 + 0.5**1.5, 0.5, 0.5 - 0.5**1.5]),
        ("step", 0, [1, 1, 1, 1, 0.1, 0.1, 0.01, 0.01]),
        ("linear", 20, [0.05, 0.1, 0.15, 0.2, 0.25, 0.3, 0.35, 0.4]),
    ],
)
def test_worked_by_hand(schedule, warmup, expected):
    scale = RateSchedule(schedule, warmup).over(8)
    assert [scale(tick) for tick in range(8)] == pytest.approx(expected)


def test_what_falls_never_reaches_nothing():
    for schedule in ("linear", "cosine"):
        assert RateSchedule(schedule).over(10**6)(10**6) == LEAST == RateSchedule(schedule).over(8)(9)
        behind = RateSchedule(schedule, 8).over(8)
        assert behind(8) == 1 and behind(9) == LEAST, "no tick is left behind the warm-up"


def test_the_linear_schedule_keeps_its_bits():
    for ticks in (1, 3, 7, 1000):
        found = list(map(RateSchedule("linear").over(ticks), range(ticks)))
        assert found == [max(1 - t / ticks, 1e-4) for t in range(ticks)]
