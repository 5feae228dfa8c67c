"""A tree that is exchanged in the midst of training learns as it would by hand, and an engine that was loaded does the same."""

import copy

import numpy as np
import pytest

from hybrid import regrow, trees
from hybrid.engine import Engine
from tests.support.small_engine import BATCH, CLASSES, Feed, assert_same_bits, engine, parameters


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
    with pytest.raises(ValueError, match=r"vectors: found \(5, 2\), expected \(30, any\): a row a class"):
        regrow(made, Feed(), np.ones((5, 2)))
    smaller = Feed()
    smaller.classes = 7
    with pytest.raises(ValueError, match="feed: has 7 classes, the readout 30"):
        regrow(made, smaller)
    assert_same_bits(parameters(made), before)
