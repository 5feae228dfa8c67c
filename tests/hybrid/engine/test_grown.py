"""An engine that gets more classes and rows, or another tree, goes on, and from a checkpoint with the same bytes."""

import copy
import itertools

import numpy as np
import pytest

from hybrid import regrow, trees
from hybrid.engine import Engine
from tests.support.small_engine import BATCH, CLASSES, Feed, assert_same_bits, engine, parameters

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
    made = engine(**options)
    for tick in itertools.islice(made.run(feed), ticks):
        if tick.number == 3:
            made.readout.add_classes([4, 1])
    made.readout.add_classes([2] * (MORE - 2))
    made.embedding.add_rows(MORE)
    return made


def test_a_run_goes_on_with_more_classes_and_rows(tmp_path):
    made, size = grown(Feed(20), 6), engine().size
    assert made.tick == 6 and made.size == size + MORE * (6 + 4)  # a node of 6 and a row of 4 numbers a class
    made.save(tmp_path)
    again, _ = Engine.load(tmp_path, threads=2)
    with pytest.raises(ValueError, match=f"feed: has {CLASSES} classes, the readout {CLASSES + MORE}"):
        next(made.run(Feed(20)))
    losses = [[tick.loss for tick in one.run(Larger(40))] for one in (made, again)]
    assert losses[0] == losses[1] and len(losses[0]) == 34
    assert_same_bits(parameters(made), parameters(again))
    assert made.scores([[1, 2, CLASSES + 4]]).shape == (1, CLASSES + MORE)


class Epochs(Feed):
    """Two epochs."""

    def __init__(self, **options):
        super().__init__(5, **options)
        self.epochs = 2

    def __len__(self):
        return 10


def by_hand(made, feed, vectors):
    kept = made.readout.regrow(trees.clustered(vectors, feed.counts), counts=feed.counts)
    made.readout.rate_scale = 1.0
    for tick in range(5):
        batch = feed[tick]
        for rows in (slice(0, BATCH // 2), slice(BATCH // 2, BATCH)):  # as in a tick: bits may depend on the size
            hidden = made.hidden(batch.ids.reshape(BATCH, -1)[rows])
            made.readout.step(np.empty_like(hidden), hidden, batch.target[rows])
    return kept


@pytest.mark.parametrize("of_rows", [True, False])
def test_new_nodes_learn_from_the_last_epoch_and_all_else_stands_still(tmp_path, of_rows):
    feed, made = Epochs(), engine(micro_batches=2, rate=0.1)
    for _ in made.run(feed):
        if made.tick != 5:
            continue
        twin, before = copy.deepcopy(made), parameters(made)
        made.save(tmp_path)
        vectors = made.embedding.vectors()[:CLASSES] if of_rows else None
        kept = regrow(made, feed, vectors)
        assert kept == by_hand(twin, feed, twin.readout.vectors() if vectors is None else vectors)
        assert_same_bits(parameters(made), parameters(twin))
        after = parameters(made)
        assert all(after[name].tobytes() == array.tobytes() for name, array in before.items() if "readout" not in name)
        assert made.readout.nodes.any(axis=1).all()
    again = Engine.load(tmp_path, threads=2)[0]
    assert regrow(again, feed, again.embedding.vectors()[:CLASSES] if of_rows else None) == kept
    list(again.run(feed))
    assert_same_bits(parameters(again), parameters(made))


def test_what_cannot_be_exchanged_is_refused():
    with pytest.raises(ValueError, match="readout: found a full readout, expected a tree"):
        regrow(engine("full"), Feed())
    made = engine()
    before = parameters(made)
    with pytest.raises(ValueError, match=r"vectors: found \(5, 2\), expected \(30, any\): one row per class"):
        regrow(made, Feed(), np.ones((5, 2)))
    smaller = Feed()
    smaller.classes = 7
    with pytest.raises(ValueError, match="feed: has 7 classes, the readout 30"):
        regrow(made, smaller)
    assert_same_bits(parameters(made), before)
