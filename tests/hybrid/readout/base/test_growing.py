"""A tree that is given, or rebuilt while its readout learns: kept by checkpoints, carried over, refused where it cannot be."""

import copy
import itertools
import json

import numpy as np
import pytest

from hybrid import trees
from hybrid.engine import Embedding, Engine
from hybrid.readout import TreeReadout, rebuild
from tests.support import small_engine
from tests.support.readouts import BATCH, CLASSES, COUNTS, MAKE, WIDTH, batch, every, frozen, train

VECTORS = np.random.default_rng(5).normal(size=(CLASSES, 4)).astype(np.float32)
GIVEN = trees.clustered(VECTORS, COUNTS)


@pytest.mark.parametrize("split", [0, 5])
def test_a_checkpoint_keeps_a_tree_that_is_given(split):
    readout = TreeReadout(COUNTS, WIDTH, tree=GIVEN, split=split, batch=BATCH, rate=0.1, optimiser="adagrad")
    train(readout)
    again = rebuild(json.loads(json.dumps(readout.describe())))
    for name, array in again.parameters().items():
        np.copyto(array, readout.parameters()[name])
    again.restore(json.loads(json.dumps(readout.state())))
    assert again.tree.node_up.tolist() == GIVEN.node_up.tolist() and again.describe()["tree"] == "given"
    assert train(again, first=5) == train(readout, first=5) and frozen(again) == frozen(readout)
    again.parameters()["leaf_up"][3] = 0
    with pytest.raises(ValueError, match="pointers to parents"):
        again.restore({})


def test_a_tree_that_stays_the_same_changes_nothing():
    readout = MAKE["huffman"](rate=0.3, optimiser="row-adagrad", biases=True)
    train(readout)
    other = copy.deepcopy(readout)
    other.regrow(trees.huffman(COUNTS), batch()[1])
    assert "leaf_up" in other.parameters() and "leaf_up" not in readout.parameters()
    assert train(other, first=5) == train(readout, first=5)
    assert other.nodes.tobytes() == readout.nodes.tobytes() and other.biases.tobytes() == readout.biases.tobytes()


@pytest.mark.parametrize("name", ["huffman", "balanced", "split"])
def test_what_was_learned_is_carried_over(name):
    readout = MAKE[name](rate=0.1)
    _, hidden, _ = batch(seed=1)
    target = np.arange(BATCH, dtype=np.int32) % 8  # what is learned can be told from what is not
    grad = np.empty_like(hidden)
    blank = readout.log_prob(hidden, target).mean()
    for _ in range(20):
        readout.step(grad, hidden, target)
    learned = readout.log_prob(hidden, target).mean()
    readout.regrow(trees.clustered(readout.vectors(), COUNTS), hidden)
    np.testing.assert_allclose(np.exp(every(readout, hidden).astype(float)).sum(axis=1), 1, atol=1e-5)
    assert readout.log_prob(hidden, target).mean() > blank + (learned - blank) / 3
    readout.step(grad, hidden, target)


def test_rebuilt_where_the_examples_pass_a_multiple():
    readout = TreeReadout(COUNTS, WIDTH, tree="clustered", regrow=40, alike="paths", batch=BATCH, rate=0.1)
    seen = [readout.tree]
    for seed in range(6):
        readout.still(*batch(seed=seed))
        readout.step(*batch(seed=seed))
        seen.append(readout.tree)
    changed = [one is not other for one, other in itertools.pairwise(seen)]
    assert changed == [False, False, True, False, True, False]  # at 48 and 80 of 96 examples
    assert readout.state() == {"examples": 96}


def test_not_rebuilt_once_rates_are_low():
    readout = MAKE["clustered"](rate=0.1)
    readout.rate_scale, first = 0.49, readout.tree
    train(readout)
    assert readout.tree is first


def test_an_engine_hands_its_rows(tmp_path):
    def made():
        tree = TreeReadout(small_engine.Feed.counts, 4, tree="clustered", regrow=64, batch=BATCH)
        return Engine(Embedding(small_engine.CLASSES, 4, mean=True, spread=0.3), None, tree, threads=1)

    feed, engine = small_engine.Feed(bags=True), made()
    for tick, _ in enumerate(engine.run(feed)):
        if tick == 3:
            rows = engine.embedding.table[: small_engine.CLASSES]
            expected = trees.clustered(rows, small_engine.Feed.counts)
            np.testing.assert_array_equal(engine.readout.tree.leaf_up, expected.leaf_up)
        if tick == 5:
            engine.save(tmp_path)
    again, _ = Engine.load(tmp_path, threads=1)
    list(again.run(feed))
    small_engine.assert_same_bits(again.parameters(), engine.parameters())


def test_refused_where_it_cannot_be():
    with pytest.raises(ValueError, match="regrow: found 5 for a huffman tree"):
        TreeReadout(COUNTS, WIDTH, regrow=5)
    with pytest.raises(ValueError, match="cut between two places"):
        TreeReadout(COUNTS, WIDTH, tree="clustered", split=3)
    with pytest.raises(ValueError, match="tree: found 5 leaves, expected 37"):
        TreeReadout(COUNTS, WIDTH, tree=trees.balanced(5))
    with pytest.raises(ValueError, match="tree: found list, expected one of huffman"):
        TreeReadout(COUNTS, WIDTH, tree=[1])
    alone = TreeReadout(COUNTS, WIDTH, tree="clustered", batch=BATCH)
    with pytest.raises(ValueError, match='without an engine, whose rows they are; expected "paths"'):
        alone.step(*batch())
    with pytest.raises(ValueError, match="input rows on the CPU: found 5, expected one a class, 37"):
        Engine(Embedding(5, WIDTH), None, alone)
    before = frozen(alone)
    with pytest.raises(ValueError, match="tree: found 5 leaves"):
        alone.regrow(trees.balanced(5), batch()[1])
    with pytest.raises(ValueError, match="hidden: found no vectors"):
        alone.regrow(trees.balanced(CLASSES), batch(rows=0)[1])
    assert frozen(alone) == before
