"""The gradient of a trunk is that of each micro-batch alone, added in float32 by the tree."""

import numpy as np
import pytest

from hybrid import SGD, Pipeline
from hybrid.engine import Embedding, Engine
from hybrid.readout import FullReadout
from hybrid.trunk import nodes
from hybrid.trunk.mlp import MLP
from tests.support.small_engine import BATCH, CLASSES, CONTEXT, Feed

TRUNKS = {
    "one hidden": lambda: MLP([12, 10, 6], optimiser=SGD(0.1)),
    "deep": lambda: MLP((12, 300, 300, 6), optimiser="adam"),
}


def by_tree(grads):
    """In NumPy: halves are added before they are."""
    if len(grads) < 2:
        return grads[0]
    half = 1 << ((len(grads) - 1).bit_length() - 1)
    return by_tree(grads[:half]) + by_tree(grads[half:])


def gathered(kind, micro_batches, only=None, wholes=()):
    """The arrays of a trunk's gradient after the first tick of an engine whose readout stands still."""
    trunk, readout = TRUNKS[kind](), FullReadout(CLASSES, 6, batch=BATCH, optimiser=SGD(0.0))
    for array in readout.parameters().values():
        array[...] = np.random.default_rng(1).normal(size=array.shape)
    rows = Embedding(CLASSES, 4, per_example=CONTEXT, spread=0.3)
    trained = Engine(rows, trunk, readout, threads=1, device="cpu", pipeline=Pipeline(micro_batches=micro_batches))
    kept = []
    trunk.gradient.divide(wholes)
    backward = trunk.backward
    trunk.backward = lambda slot: backward(slot) if only is None or slot.micro in only else None

    def move(slot):
        trunk.gradient.close()
        kept.extend(array.copy() for array in trunk.gradient._arrays)

    trunk.move = move
    next(trained.run(Feed()))
    return kept


@pytest.mark.parametrize(
    ("kind", "micro_batches"), [("deep", 1), ("one hidden", 2), ("deep", 3), ("deep", 5), ("one hidden", 8)]
)
def test_the_sum_is_that_of_numpy_to_the_bit(kind, micro_batches):
    parts = -(-BATCH // -(-BATCH // micro_batches))  # that have examples
    whole, *others = gathered(kind, micro_batches)
    alone = [gathered(kind, micro_batches, [micro])[0] for micro in range(parts)]
    assert whole.any() and whole.tobytes() == by_tree(alone).tobytes()
    assert not any(array.any() for array in others)  # ready for the next tick
    assert len(others) <= np.log2(parts)


def test_a_rank_keeps_its_nodes_apart_and_the_last_may_lack_leaves():
    wholes = nodes(3, 10)  # of which this batch has 3 to 6
    assert wholes == [(3, 1), (4, 4), (8, 2)]
    first, second, *others = gathered("deep", 8, range(3, 7), wholes)
    alone = [gathered("deep", 8, [micro])[0] for micro in range(3, 7)]
    assert first.tobytes() == alone[0].tobytes()
    assert second.tobytes() == by_tree(alone[1:]).tobytes()
    assert not any(array.any() for array in others)
