"""Numbers of the feed in the place of rows: the same engine as one whose rows hold those numbers and do not move."""

import copy
import pickle

import numpy as np
import pytest

from hybrid.engine import Engine
from hybrid.readout import FullReadout
from tests.support.points import TABLE, Points, engine
from tests.support.small_engine import assert_same_bits, parameters


def without_rows(engine):
    return {name: array for name, array in parameters(engine).items() if name != "embedding.table"}


@pytest.mark.parametrize(
    ("trunk", "options"),
    [(True, {"micro_batches": 3}), (False, {}), (True, {"delay": 1, "micro_batches": 2, "overlap": True})],
)
def test_numbers_of_the_feed_teach_what_rows_of_the_same_numbers_teach(trunk, options):
    engines = [engine(dense, trunk, **options) for dense in (True, False)]
    losses = [[tick.loss for tick in each.run(Points(dense))] for each, dense in zip(engines, (1, 0), strict=True)]
    assert losses[0] == losses[1] and losses[0][-1] < losses[0][0]
    assert_same_bits(*map(without_rows, engines))
    assert engines[0].evaluate(Points(True)) == engines[1].evaluate(Points(False))


def test_numbers_are_asked_about_as_ids_are():
    dense, sparse = (engine(numbers, True, FullReadout) for numbers in (True, False))
    ids = np.array([3, 1, 1])
    np.testing.assert_array_equal(dense.hidden(x=TABLE[ids]), sparse.hidden(ids))
    np.testing.assert_array_equal(dense.scores(x=TABLE[ids]), sparse.scores(ids))
    for found, expected in zip(dense.best(k=3, x=TABLE[ids]), sparse.best(ids, 3), strict=True):
        np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize(("trunk", "way"), [(True, "checkpoint"), (False, "pickle"), (True, "copy")])
def test_what_was_kept_with_batches_begun_goes_on_with_the_same_bytes(trunk, way, tmp_path):
    options = {"delay": 1, "micro_batches": 2}
    whole, stopped = engine(True, trunk, **options), engine(True, trunk, **options)
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
