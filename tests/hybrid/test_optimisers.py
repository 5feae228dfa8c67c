"""Optimisers as users name and give them, and the parts that they do not move."""

import numpy as np
import pytest

from hybrid import MLP, SGD, Adagrad, Adam, Embedding, RowAdagrad, TreeReadout
from hybrid.optimisers import TRUNK, named

COUNTS = np.arange(9, 0, -1)
PARTS = {  # a part of every kind that one moves; its default rates by name
    "trunk": lambda optimiser: MLP([4, 3], optimiser=optimiser).optimiser,
    "rows": lambda optimiser: Embedding(4, 3, optimiser=optimiser),
    "readout": lambda optimiser: TreeReadout(COUNTS, 3, optimiser=optimiser),
}


@pytest.mark.parametrize(
    ("name", "numbers", "message"),
    [
        ("lion", {}, "optimiser: found 'lion', expected one of sgd, adam"),
        ("adam", {"momentum": 0.9}, 'momentum: found 0.9 with optimiser "adam", which has none'),
        ("sgd", {"betas": (0.9, 0.9)}, r'betas: found \(0.9, 0.9\) with optimiser "sgd", which has none'),
        ("adam", {"betas": (0.9, 1)}, r"betas: found \(0.9, 1\), expected two numbers"),
        ("sgd", {"momentum": 1}, "momentum: found 1, expected a number below 1"),
        ("sgd", {"decay": np.inf}, "decay: found inf"),
        ("sgd", {"clip": 0}, "clip: found 0, expected a number above 0"),
    ],
)
def test_numbers_that_cannot_be_are_refused(name, numbers, message):
    with pytest.raises(ValueError, match=message):
        named(name, TRUNK, **numbers)


@pytest.mark.parametrize(
    ("part", "optimiser", "message"),
    [
        ("trunk", RowAdagrad(), "optimiser: found RowAdagrad.*, expected one of sgd, adam, adamw"),
        ("trunk", "adagrad", "optimiser: found 'adagrad', expected one of sgd, adam, adamw"),
        ("rows", Adam(0.1), "optimiser: found Adam.*, expected one of sgd, row-adagrad, adagrad"),
        ("readout", "adam", "optimiser: found 'adam', expected one of sgd, row-adagrad, adagrad"),
        ("rows", SGD(0.1, momentum=0.5), "momentum: found 0.5 in SGD.*, expected none: rows have no momentum"),
        ("readout", SGD(decay=0.1), "decay: found 0.1 in SGD.*, expected none: rows have no decay"),
        ("readout", SGD(clip=1.0), "clip: found 1.0 in SGD"),
        ("trunk", SGD, "optimiser: found type, expected one of sgd"),
    ],
)
def test_an_optimiser_that_does_not_move_a_part_is_refused(part, optimiser, message):
    with pytest.raises(ValueError, match=message):
        PARTS[part](optimiser)


@pytest.mark.parametrize(
    ("part", "kind", "rate"), [("trunk", Adam, 0.001), ("rows", Adagrad, 0.05), ("readout", Adagrad, 0.025)]
)
def test_a_name_or_an_optimiser_without_a_rate_has_that_of_the_part(part, kind, rate):
    assert [PARTS[part](given).rate for given in (kind().name, kind(), kind(0.3))] == [rate, rate, 0.3]
