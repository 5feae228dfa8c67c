"""Planted models have a known crossover: it is found, and so are the winners on both sides of it."""

import pytest

from bench.cost_model import Model
from bench.crossover_costs import Size, amounts
from bench.crossover_regions import classes, crossover, regions

NOTHING = {"nodes": 0.0, "numbers": 0.0, "missed numbers": 0.0, "batches": 0.0}
DENSE = Model({"operations": 0.0, "logits": 1e-9, "weights": 0.0, "batches": 0.0}, (0.1, -0.1))
TREE = Model(NOTHING | {"batches": 0.064}, (0.1,))  # as the logits of 64 examples at a million classes
START = Size(1_000, 128, 64)


def test_the_crossover_is_where_the_lines_cross():
    """1e-9 B V seconds against 0.064: at a million classes of 64 examples."""
    found = crossover({"full": DENSE, "tree": TREE}, "output", "full", "tree", START, 10_000_000)
    assert found == pytest.approx(1_000_000, rel=0.02)


def test_who_never_or_always_wins_is_told():
    models = {"full": DENSE, "tree": TREE}
    assert crossover(models, "output", "full", "tree", START, 100_000) is None
    cheap = models | {"tree": Model(NOTHING | {"batches": 1e-6}, ())}
    assert crossover(cheap, "output", "full", "tree", START, 100_000) == START.classes


def test_each_size_has_its_winner_and_says_whether_that_is_clear():
    sizes = [START._replace(classes=count) for count in (1_000, 950_000, 10_000_000)]
    low, middle, high = regions({"full": DENSE, "tree": TREE}, "output", sizes)
    assert (low.winner, low.second, low.clear) == ("full", "tree", True)
    assert low.seconds == pytest.approx(1e-9 * 64 * 1_000) and low.times == pytest.approx(1_000)
    assert middle.winner == "full" and middle.times == pytest.approx(1 / 0.95) and not middle.clear
    assert high.winner == "tree" and high.times == pytest.approx(10)


def test_one_alone_wins_everywhere():
    (cell,) = regions({"tree": TREE}, "output", [START])
    assert (cell.winner, cell.second, cell.clear) == ("tree", None, True)
    assert cell.seconds == TREE.seconds(amounts("tree", "output", START))


def test_numbers_of_classes_stand_evenly():
    assert classes(1_000, 100_000, 1) == [1_000, 10_000, 100_000]
