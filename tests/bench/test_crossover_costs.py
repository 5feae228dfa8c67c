"""Amounts grow as the arithmetic of each contender does: with V, with its logarithm, or not at all."""

import math

import pytest

from bench.crossover_costs import CONTEXT, EMBEDDED, HIDDEN, Size, amounts, cutoffs, memory

SMALL, LARGE = Size(1_000, 128, 64), Size(1_000_000, 128, 64)


def test_a_full_softmax_takes_all_classes():
    found = amounts("full", "output", SMALL)
    assert found == {"operations": 6 * 64 * 1_000 * 128, "logits": 64_000, "weights": 128_000, "batches": 1}
    assert amounts("full", "output", LARGE)["operations"] == 1_000 * found["operations"]


def test_a_tree_takes_a_logarithm():
    small, large = (amounts("tree", "output", size) for size in (SMALL, LARGE))
    assert 1.7 < large["nodes"] / small["nodes"] < 2  # 13.4 nodes over 7.5
    assert small["missed numbers"] == 0 < large["missed numbers"] < large["numbers"]


def test_negatives_do_not_follow_the_classes():
    assert amounts("sampled", "output", Size(10_000, 128, 64)) == amounts("sampled", "output", LARGE)


def test_an_adaptive_softmax_of_one_band_is_worked_by_hand():
    """1,000 classes: 250 in the head with a slot for the band; the band's vectors are a quarter as wide."""
    found = amounts("torch adaptive", "output", SMALL)
    away = sum(1 / k for k in range(251, 1_001)) / sum(1 / k for k in range(1, 1_001))
    operations = 6 * 64 * (128 * 251 + away * 32 * (128 + 750))
    assert cutoffs(1_000) == [250]
    assert found["operations"] == pytest.approx(operations, rel=1e-3)
    assert found["weights"] == 128 * 251 + 32 * (128 + 750)
    assert amounts("torch adaptive", "output", LARGE)["operations"] < amounts("full", "output", LARGE)["operations"]


def test_a_whole_step_has_the_trunk_too():
    more = amounts("tree", "step", SMALL)
    assert more == {**amounts("tree", "output", SMALL), "trunk operations": more["trunk operations"]}
    assert more["trunk operations"] == 6 * 64 * (CONTEXT * EMBEDDED * HIDDEN + HIDDEN * 128)


def test_a_gradient_of_all_weights_takes_their_memory_again():
    """The dense rival of 10 million classes: twice 5.12 GB, and the logits of 64 examples twice."""
    size = Size(10_000_000, 128, 64)
    assert memory("torch chunked", "output", size) == 2 * 5.12e9 + 8 * 64 * 1e7
    assert math.isclose(memory("tree", "output", size), 5.12e9, rel_tol=0.1)
    assert memory("tree", "step", size) > memory("tree", "output", size)
