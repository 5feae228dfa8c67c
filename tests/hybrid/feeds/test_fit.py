"""Feeds of the user's own: what does not fit is refused by feed, tick and array, before anything moves."""

from types import SimpleNamespace

import numpy as np
import pytest

from hybrid import Pipeline
from hybrid.engine import Engine
from hybrid.engine.embedding import Embedding
from hybrid.feeds import Batch, fitting
from hybrid.readout import FullReadout
from hybrid.trunk.mlp import MLP

ROWS, CLASSES, SIZE = 10, 7, 4


class Own:
    """Gives a batch of the test at tick 1, and one that fits at all others."""

    rows, classes, batch, most_ids, epochs, ticks_per_epoch = ROWS, CLASSES, SIZE, 3 * SIZE, 1, 3
    counts = np.ones(CLASSES, np.int64)

    def __init__(self, *batch):
        self.given = batch[0] if len(batch) == 1 else Batch(*batch)

    def __len__(self):
        return self.ticks_per_epoch

    def __getitem__(self, tick):
        return self.given if tick == 1 else Batch(np.zeros(6, np.int32), self.places, np.zeros(2, np.int32))

    places = None

    def describe(self):
        return {}


class Bags(Own):
    """So too, of bags."""

    places = np.array([0, 1, 6])


class Dense(Own):
    """Gives numbers instead of ids."""

    rows = most_ids = 0
    width, most_targets = 3, 6

    def __getitem__(self, tick):
        return self.given


IDS, PLACES, TARGET = np.arange(6), np.array([0, 2, 6]), np.array([6, 0])
TWICE = np.array([0, 2**32], np.int64)  # its int32 are zeros
OUTSIDE = {
    r"Own\[1\]: ids\[5\]: found 10, expected 0 to 9": Own(IDS + 5, None, TARGET),
    r"ids\[1\]: found 4294967296": Own(np.tile(TWICE, 3), None, TARGET),
    r"Own\[1\]: target\[0\]: found 7, expected 0 to 6": Own(IDS, None, TARGET + 1),
}
BAD = {
    r"target: found \(5,\).* at most 4, feed.batch": Own(IDS, None, np.zeros(5, int)),
    "ids: found 13, expected at most 12, feed.most": Own(np.zeros(13, int), None, TARGET),
    "ids: found 5, expected 6: 3 for each of 2 targets": Own(IDS[:5], None, TARGET),
    "bag_at: found an array, expected None": Own(IDS, PLACES, TARGET),
    r"bag_at\[2\]: found 7, expected 6, the number of": Bags(IDS, [0, 2, 7], TARGET),
    r"Own\[1\]: found list, expected a Batch": Own([IDS, None, TARGET]),
}


def engine(bags):
    embedding = Embedding(ROWS, 2, **({"bags": "mean"} if bags else {"per_example": 3}))
    parts = embedding, MLP([embedding.outputs, 4, 3]), FullReadout(CLASSES, 3)
    return Engine(*parts, threads=1, pipeline=Pipeline(overlap=False))


@pytest.mark.parametrize("message", OUTSIDE | BAD)
def test_a_batch_that_does_not_fit_is_refused_in_training_and_in_evaluation(message):
    feed, error = (OUTSIDE | BAD)[message], IndexError if message in OUTSIDE else ValueError
    trained = engine(isinstance(feed, Bags))
    run = trained.run(feed)
    next(run)
    before = {name: array.copy() for name, array in trained.parameters().items()}
    for call in (lambda: next(run), lambda: trained.evaluate(feed)):
        with pytest.raises(error, match=message):
            call()
    assert trained.tick == 1 and not trained.torn
    for name, array in trained.parameters().items():
        np.testing.assert_array_equal(array, before[name])


@pytest.mark.parametrize("kind, dtype", [(np.int64, np.int64), (np.uint8, np.uint16)])
def test_whole_numbers_of_any_size_are_taken_as_the_arrays_that_a_batch_promises(kind, dtype):
    batch = fitting(Bags(IDS.astype(kind), PLACES.astype(dtype), TARGET.astype(kind)), 1)
    assert [array.dtype for array in batch[:3]] == [np.int32, np.int64, np.int32]
    for found, expected in zip(batch[:3], (IDS, PLACES, TARGET), strict=True):
        np.testing.assert_array_equal(found, expected)


X, NAN = np.arange(6, dtype=np.float32).reshape(2, 3), np.float32("nan")
PIXELS = Batch(None, None, TARGET, x=X)
WEIGHTED = Batch(IDS, PLACES, TARGET, np.ones(2, np.float32), np.ones(6, np.float32))
SEVERAL = Batch(None, None, np.array([3, 0, 6]), x=X, target_at=[0, 1, 3])
BAD_VALUES = {
    r"Dense\[1\]: x: found float32 \(2, 2\), expected float32 \(2, 3\)": Dense(PIXELS._replace(x=X[:, :2].copy())),
    r"x\[0\]: found NaN or infinity": Dense(PIXELS._replace(x=X * NAN)),
    "ids: found an array, expected None: this batch has x": Dense(PIXELS._replace(ids=IDS)),
    "ids: found None and no x, expected one of them": Dense(PIXELS._replace(x=None)),
    r"target_at\[2\]: found 4, expected 3, the number of targets": Dense(SEVERAL._replace(target_at=[0, 2, 4])),
    r"weight: found float64 \(2,\), expected float32": Dense(PIXELS._replace(weight=np.ones(2))),
    r"weight\[1\]: found NaN or infinity": Dense(PIXELS._replace(weight=np.array([1, NAN], np.float32))),
    r"values: found float32 \(5,\), expected float32 \(6,\)": Bags(WEIGHTED._replace(values=np.ones(5, np.float32))),
    "values: found an array, expected None: .* bag_at is None": Bags(WEIGHTED._replace(bag_at=None)),
}
OF_ENGINES = {  # the batch, and what the engine takes
    "x: found an array, expected None: the engine has an embedding": (Dense(PIXELS), {"per_example": 3}),
    r"x: found None, expected \(2, 3\): the engine has Inputs": (Own(IDS, None, TARGET), {"dense": 3}),
    "values: found an array, expected None: this embedding has bags='mean'": (Bags(WEIGHTED), {"bags": "mean"}),
    "values: found None, expected a number for each id": (Bags(IDS, PLACES, TARGET), {"bags": "weighted"}),
}


def source(**facts):
    return SimpleNamespace(**{"bags": None, "per_example": 0, "dense": 0} | facts)


@pytest.mark.parametrize("message", BAD_VALUES | OF_ENGINES)
def test_numbers_weights_values_and_several_targets_that_do_not_fit_are_refused_by_name(message):
    feed, wanted = OF_ENGINES.get(message) or (BAD_VALUES[message], None)
    with pytest.raises(ValueError, match=message):
        fitting(feed, 1, wanted and source(**wanted))


def test_an_example_may_have_any_number_of_targets():
    several = SEVERAL._replace(target_at=[0, 0, 3], weight=np.array([2, 0], np.float32))
    batch = fitting(Dense(several), 1, source(dense=3))
    assert batch.examples == 2 and batch.target_at.dtype == np.int64 and batch.target.dtype == np.int32
    assert fitting(Dense(PIXELS), 1, source(dense=3)).examples == 2
    assert np.shares_memory(batch.x, X)
