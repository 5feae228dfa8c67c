"""When a curve reaches a perplexity, by hand; and what the committed records say is found in them."""

import pytest

from bench.equal_quality import NEAR, WORDS, Curve, committed, curves, targets


def curve(*points, who="tree"):
    return Curve(who, 1_000, "seconds", points)


def test_the_way_between_two_points_is_straight_on_logarithmic_axes():
    assert curve((10, 400.0), (40, 100.0)).seconds_to(200) == pytest.approx(20)
    assert curve((10, 400.0), (40, 100.0)).seconds_to(100) == pytest.approx(40)


def test_what_is_there_at_first_needs_no_longer_and_what_never_is_has_no_time():
    assert curve((10, 400.0), (40, 100.0)).seconds_to(500) == 10
    assert curve((10, 400.0), (40, 100.0)).seconds_to(99) is None


def test_a_training_that_gets_worse_was_there_before():
    """Longer trainings may overfit."""
    found = curve((10, 400.0), (40, 100.0), (80, 300.0))
    assert found.seconds_to(100) == pytest.approx(40) and found.best == (40, 100.0)


def test_targets_are_near_the_lowest_of_all():
    assert targets([curve((10, 400.0)), curve((10, 200.0))]) == [times * 200 for times in NEAR]


def test_looks_at_large_trainings_are_points_unless_they_diverged():
    record = {"bench": "large", "work": "large.pairs", "who": "tree", "params": {"classes": 5}}
    quality = {"after 60 s": [90.0], "after 120 s": [80.0], "epochs": [3.0]}
    lost = {"after 60 s": [3.9e143], "epochs": [0.1]}
    found = curves([record | {"quality": quality}, record | {"who": "head", "quality": lost}])
    assert found == {5: [Curve("tree", 5, "seconds of one processor", ((60.0, 90.0), (120.0, 80.0)))]}


def test_the_committed_records_are_of_three_numbers_of_classes():
    found = curves(committed())
    assert list(found) == [WORDS, 250_000, 1_000_000]
    for ones in found.values():
        assert {"tree"} <= {one.who.split()[0] for one in ones} and len(ones) > 3
        reached = [one for one in ones if one.seconds_to(targets(ones)[0])]
        assert reached, "the one with the lowest perplexity, at least"
