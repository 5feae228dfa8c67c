"""The search: every value of every rate is tried equally often, and each readout at the same points."""

from collections import Counter

from bench import tune_language


def test_every_value_is_tried_equally_often():
    points = tune_language._points(tune_language.TRIES)
    assert len({tuple(point.values()) for point in points}) == tune_language.TRIES
    for name, values in tune_language.GRID.items():
        times = Counter(point[name] for point in points)
        assert set(times) == set(values) and len(set(times.values())) == 1
    assert points == tune_language._points(tune_language.TRIES)
