"""Another tree for the readout of an engine, in the midst of training: of what the model has learned of the classes so far."""

from typing import TYPE_CHECKING, Any

import numpy as np

from .. import trees
from ..feeds import Feed, most_targets
from .schedule import part
from .suits import check_feed

if TYPE_CHECKING:
    from .engine import Engine


def regrow(engine: "Engine", feed: Feed, vectors: Any = None) -> int:
    """Exchange the tree of an engine for `trees.clustered` of vectors; returns how many nodes keep what they have learned.

    engine   with a tree as its readout, between two ticks; inside `for tick in engine.run(feed)` too
    feed     from which it learns
    vectors  (V, D), a row a class: where ids of the feed are classes too, such as words, engine.embedding.vectors()[:V];
             None: engine.readout.vectors()

    Nodes that part the same two sets of classes are kept. Then the tree learns from the examples of the last epoch, those
    of the ticks_per_epoch ticks before this one: their hidden vectors are computed anew, without dropout, by the trunk as it is
    now, while rows and trunk stand still. It learns at the rate that the readout was made with: at one that has fallen by then
    new nodes would learn too little. What comes out follows from the state of the engine: one that was saved before and
    loaded does the same.

    Raises ValueError for another readout, another feed and other vectors; then nothing has moved.
    """
    engine._check_whole()
    readout: Any = engine.readout
    if not hasattr(readout, "regrow"):
        raise ValueError(f"readout: found a {readout.kind} readout, expected a tree, whose shape can be exchanged")
    check_feed(engine, feed)
    with engine._runs.alone:
        engine.settle()
        rows = np.asarray(readout.vectors() if vectors is None else vectors)
        if len(rows) != readout.classes:
            raise ValueError(f"vectors: found {rows.shape}, expected ({readout.classes}, any): a row a class")
        counts = feed.counts
        kept: int = engine.inline.run(lambda: readout.regrow(trees.clustered(rows, counts), counts=counts)).wait()
        _teach(engine, feed, range(max(engine.tick - feed.ticks_per_epoch, 0), min(engine.tick, len(feed))))
        return kept


def _teach(engine: "Engine", feed: Feed, ticks: range) -> None:
    """Let the readout alone learn from the batches of some ticks, at its own rate."""
    asking, readout = engine._asking, engine.readout
    slot = asking.slot(feed.batch, feed.most_ids, targets=max(most_targets(feed), feed.batch))
    before, readout.rate_scale = readout.rate_scale, 1.0
    try:
        for tick in ticks:
            batch = engine._fitting(feed, tick)
            asking.teach(readout, batch, tick, slot, part(batch.examples, engine.micro_batches, engine.whole) or 1)
    finally:
        readout.rate_scale = before
