"""An engine that gets more classes and rows while it learns goes on, is saved, and goes on from there with the same bytes."""

import itertools

import numpy as np
import pytest

from hybrid.engine import Engine
from hybrid.storage import checkpoint
from tests.support.small_engine import CLASSES, Feed, assert_same_bits, engine, parameters

MORE = 5


class Larger(Feed):
    """The little language with more words."""

    rows = classes = CLASSES + MORE
    counts = np.arange(CLASSES + MORE, 0, -1)

    def __getitem__(self, tick):
        batch = super().__getitem__(tick)
        return batch._replace(ids=(batch.ids * 3 + tick) % self.rows, target=(batch.target * 3 + tick) % self.classes)


def grown(feed, ticks, **options):
    """An engine that learned from a feed for some ticks, between two of which it grew."""
    made = engine(delay=options.pop("delay", 0), **options)
    for tick in itertools.islice(made.run(feed), ticks):
        if tick.number == 3:
            made.readout.add_classes([4, 1])
    made.readout.add_classes([2] * (MORE - 2))
    made.embedding.add_rows(MORE)
    return made


@pytest.mark.parametrize("delay", [0, 1])
def test_a_run_goes_on_with_more_classes_and_rows(tmp_path, delay):
    made, size = grown(Feed(20), 6, delay=delay), engine().size
    assert made.tick == 6 and made.size == size + MORE * (6 + 4)  # a node of 6 and a row of 4 numbers a class
    made.save(tmp_path)
    assert not checkpoint.read_facts(tmp_path)["engine"]["begun"]  # of the feed before: the new one begins them anew
    again, _ = Engine.load(tmp_path, threads=2)
    with pytest.raises(ValueError, match=f"feed: has {CLASSES} classes, the readout {CLASSES + MORE}"):
        next(made.run(Feed(20)))
    losses = [[tick.loss for tick in one.run(Larger(40))] for one in (made, again)]
    assert losses[0] == losses[1] and len(losses[0]) == 34
    assert_same_bits(parameters(made), parameters(again))
    assert made.scores([[1, 2, CLASSES + 4]]).shape == (1, CLASSES + MORE)
