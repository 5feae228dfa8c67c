"""hybrid/sweep/strategies.py: which trials there are, and how far they go."""

import pytest

from hybrid.sweep.file import meaning
from hybrid.sweep.strategies import Rung, rungs, trials

VARY = {"rate": {"from": 0.001, "to": 0.1, "log": True}, "width": [4, 8]}


def sweep(strategy, vary=VARY, **said):
    fixed = {"text": "book.txt", "epochs": 9}
    return meaning({"sweep": {"model": "language", "strategy": strategy, **said}, "fixed": fixed, "vary": vary})


def test_a_grid_is_every_combination():
    found = trials(sweep("grid", {"width": [4, 8], "readout": ["tree", "full"], "serial": [True, False]}))
    assert len(found) == 8 and len({tuple(trial.values()) for trial in found}) == 8
    assert found[:2] == [
        {"width": 4, "readout": "tree", "serial": True},
        {"width": 4, "readout": "tree", "serial": False},
    ]


def test_the_seed_draws_the_trials_and_more_trials_begin_with_fewer():
    five, seven = trials(sweep("random", trials=5, seed=1)), trials(sweep("random", trials=7, seed=1))
    assert seven[:5] == five == trials(sweep("random", trials=5, seed=1))
    assert trials(sweep("random", trials=5, seed=2)) != five
    assert trials(sweep("halving", trials=5, seed=1, first=1)) == five


def test_no_trial_is_drawn_twice():
    found = trials(sweep("random", {"width": [4, 8], "hidden": [4, 8]}, trials=4))
    assert len({tuple(trial.values()) for trial in found}) == 4
    with pytest.raises(ValueError, match=r"trials: found 5, expected at most 4"):
        trials(sweep("random", {"width": [4, 8], "hidden": [4, 8]}, trials=5))


def test_a_trial_that_the_command_would_refuse_is_refused_by_number():
    with pytest.raises(ValueError, match=r"trial 2 \(readout full, tree balanced\): --tree: not used"):
        trials(sweep("grid", {"readout": ["tree", "full"], "tree": ["balanced"]}))


@pytest.mark.parametrize(
    ("count", "first", "factor", "expected"),
    [
        (9, 1, 3, [(1, 9), (3, 3), (9, 1)]),
        (10, 1, 3, [(1, 10), (3, 3), (9, 1)]),
        (4, 1, 2, [(1, 4), (2, 2), (9, 1)]),  # one is left: it goes to its end
        (100, 4, 2, [(4, 100), (8, 50), (9, 25)]),
        (5, 9, 3, [(9, 5)]),
        (1, 1, 3, [(9, 1)]),
    ],
)
def test_rungs_of_halving(count, first, factor, expected):
    assert rungs(sweep("halving", trials=count, first=first, factor=factor)) == [Rung(*rung) for rung in expected]


def test_grid_and_random_have_one_rung():
    assert rungs(sweep("random", trials=5)) == [Rung(None, 5)]


def test_halving_does_not_begin_beyond_the_end():
    with pytest.raises(ValueError, match=r"\[sweep\] first: found 10, expected at most 9, the epochs of a whole trial"):
        rungs(sweep("halving", trials=3, first=10))
