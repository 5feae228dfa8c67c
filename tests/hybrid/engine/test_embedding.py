"""Rows of which there come more, and numbers of the feed in their place; rules are tested in tests/hybrid/test_sparse.py."""

import copy
import pickle

import numpy as np
import pytest

from hybrid.engine import Embedding, Engine
from tests.support.points import Points, engine
from tests.support.small_engine import assert_same_bits, parameters


@pytest.mark.parametrize("at", [None, 3])
def test_new_rows_begin_as_those_of_a_larger_table_and_the_others_stay(at):
    made, large = (Embedding(rows, 3, seed=4, optimiser="adagrad") for rows in (5, 12))
    made._host.squares[:] = np.arange(15).reshape(5, 3) + 1
    before, squares = made.table.copy(), made._host.squares.copy()
    for count in (3, 4):
        made.add_rows(count, at)
    new = np.r_[5:12] if at is None else np.r_[7:10, 3:7]  # as they came, the later ones before the first
    stay = np.setdiff1d(np.arange(12), new)
    np.testing.assert_array_equal(made.table[new], large.table[5:])
    np.testing.assert_array_equal(made.table[stay], before)
    np.testing.assert_array_equal(made.parameters()["squares"][stay], squares)
    assert not made.parameters()["squares"][new].any() and made.rows == made.describe()["rows"] == 12


def test_rows_that_cannot_be_are_refused():
    made, at = Embedding(5, 3), "at: found 6, expected a whole number from 0 to 5"
    for given, message in (((0,), "count: found 0"), ((2**31,), "count: found"), ((1, 6), at)):
        with pytest.raises(ValueError, match=message):
            made.add_rows(*given)
    assert made.rows == len(made.table) == 5
    assert not Embedding(5, 3, spread=0).table.any()


def without_rows(engine):
    return {name: array for name, array in parameters(engine).items() if name != "embedding.table"}


@pytest.mark.parametrize(
    ("trunk", "options"),
    [(True, {"micro_batches": 3}), (False, {}), (True, {"micro_batches": 2, "overlap": True})],
)
def test_numbers_of_the_feed_teach_what_rows_of_the_same_numbers_teach(trunk, options):
    engines = [engine(dense, trunk, **options) for dense in (True, False)]
    losses = [[tick.loss for tick in each.run(Points(dense))] for each, dense in zip(engines, (1, 0), strict=True)]
    assert losses[0] == losses[1] and losses[0][-1] < losses[0][0]
    assert_same_bits(*map(without_rows, engines))
    assert engines[0].evaluate(Points(True)) == engines[1].evaluate(Points(False))


@pytest.mark.parametrize(("trunk", "way"), [(True, "checkpoint"), (False, "pickle"), (True, "copy")])
def test_what_was_kept_within_a_run_goes_on_with_the_same_bytes(trunk, way, tmp_path):
    whole, stopped = (engine(True, trunk, micro_batches=2) for _ in range(2))
    losses = [tick.loss for tick in whole.run(Points(True))]
    run = stopped.run(Points(True))
    before = [next(run).loss for _ in range(3)]
    if way == "checkpoint":
        stopped.save(tmp_path)
        again, _ = Engine.load(tmp_path, threads=1)
    else:
        again = pickle.loads(pickle.dumps(stopped)) if way == "pickle" else copy.deepcopy(stopped)
    run.close()
    assert before + [tick.loss for tick in again.run(Points(True))] == losses
    assert_same_bits(parameters(again), parameters(whole))
