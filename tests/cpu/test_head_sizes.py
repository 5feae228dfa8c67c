"""How large a head is for a share of the time."""

import numpy as np
import pytest

from cpu.output.head_parts import VISIT, choose, cost

COUNTS = np.array([1, 4, 1, 2])  # by falling frequency a half, a quarter, two eighths


def test_what_a_step_costs():
    """Alone: 0, then 2 classes. The first: of 1.75 bits the cluster tells 1. The second: with 1/4, 1 bit is left."""
    found = cost(COUNTS, np.array([0, 2, 2]), np.array([2, 1, 2]), "tree")
    np.testing.assert_allclose(found, [2 + 0.75 * VISIT, 3 + 0.25 * VISIT, 4])
    np.testing.assert_allclose(cost(COUNTS, np.array([0, 2, 4]), np.array([2, 1, 0]), "softmax"), [2 + 2, 3 + 0.5, 4])


@pytest.mark.parametrize("tails", ["tree", "softmax"])
def test_without_clusters_or_for_all_of_the_time_all_classes_are_alone(tails):
    for share in (1e-3, 0.5, 1.0):
        assert choose(COUNTS, share, tails, None, 0) == choose(COUNTS, share, tails, 4, 0) == (4, 0)
    assert choose(COUNTS, 1.0, tails, None, None) == (4, 0)


@pytest.mark.parametrize("tails", ["tree", "softmax"])
def test_the_largest_head_for_the_share_is_taken(tails):
    counts = 1e6 / np.arange(1, 20001)
    before = 0
    for share in (0.02, 0.1, 0.5):
        alone, clusters = choose(counts, share, tails, None, None)
        more = cost(counts, np.array([alone, alone + 1]), np.array([clusters, clusters]), tails)
        assert more[0] <= share * 20000 < more[1] + 2 and alone > before
        assert clusters == round(np.sqrt(20000 - alone))
        before = alone


def test_sizes_that_are_given_stay():
    counts = 1e6 / np.arange(1, 2001)
    assert choose(counts, 0.1, "tree", 300, 20) == (300, 20) and choose(counts, 0.1, "tree", 1100, None) == (1100, 30)
    alone, clusters = choose(counts, 0.1, "tree", None, 7)
    assert clusters == 7 and 0 < alone < 200
    assert choose(counts, 0.1, "tree", 2000, None) == (2000, 0)
    assert choose(counts, 1e-6, "tree", None, 2000) == (0, 2000)
