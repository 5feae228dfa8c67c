"""A head with clusters: which classes are where, and the readouts that it becomes at its ends."""

import numpy as np
import pytest

from hybrid import SGD, HeadParts
from hybrid.readout import FullReadout, HeadReadout
from tests.support.readouts import CLASSES, COUNTS, WIDTH, train

SIZES = HeadParts(9, 5)


def test_a_head_of_all_classes_is_the_full_softmax():
    found = HeadReadout(COUNTS, WIDTH, optimiser=SGD(0.3), parts=HeadParts(head=CLASSES))
    expected = FullReadout(COUNTS, WIDTH, optimiser=SGD(0.3))
    np.testing.assert_allclose(train(found), train(expected), rtol=1e-6)
    np.testing.assert_allclose(found.parameters()["head"], expected.weights, atol=1e-6)
    assert found.clusters == 0 and found.parameters()["tail"].shape == (0, WIDTH)


def test_one_cluster_of_all_classes_is_the_full_softmax():
    found = HeadReadout(COUNTS, WIDTH, optimiser=SGD(0.3), parts=HeadParts(head=0, clusters=1))
    expected = FullReadout(COUNTS, WIDTH, optimiser=SGD(0.3))
    np.testing.assert_allclose(train(found), train(expected), rtol=1e-6)
    np.testing.assert_allclose(found.parameters()["tail"], expected.weights, atol=1e-6)


def test_the_most_frequent_classes_are_alone_and_others_share_a_slot():
    """Counts fall, so slots rise: bands of about equally frequent classes."""
    readout = HeadReadout(COUNTS, WIDTH, parts=SIZES)
    assert readout.slot[:9].tolist() == list(range(9))
    assert np.bincount(readout.slot[9:])[9:].tolist() == [6, 6, 5, 6, 5] and (np.diff(readout.slot) >= 0).all()


def test_classes_with_alike_vectors_share_a_cluster():
    rng = np.random.default_rng(0)
    group = rng.permutation(np.arange(CLASSES - 9) % 4)
    vectors = 0.1 * rng.random((CLASSES, WIDTH), np.float32)
    vectors[np.arange(9, CLASSES), group] += 1
    readout = HeadReadout(COUNTS, WIDTH, parts=HeadParts(head=9, clusters=4))
    readout.begin_with(vectors)
    assert len(set(zip(group, readout.slot[9:], strict=True))) == 4


def test_as_many_clusters_as_classes_may_be_asked_for_and_no_more():
    found = HeadReadout(COUNTS, WIDTH, parts=HeadParts(clusters=CLASSES))
    assert (found.head, found.clusters) == (0, CLASSES)
    found = HeadReadout(COUNTS, WIDTH, parts=HeadParts(clusters=0))
    assert (found.head, found.clusters) == (CLASSES, 0)
    with pytest.raises(ValueError, match=f"clusters: found {CLASSES + 1}"):
        HeadReadout(COUNTS, WIDTH, parts=HeadParts(clusters=CLASSES + 1))


def test_slots_of_a_checkpoint_that_are_none_are_refused():
    for place, value in ((0, 1), (20, -1), (20, 14), (slice(9, None), 9)):
        readout = HeadReadout(COUNTS, WIDTH, parts=SIZES)
        readout.parameters()["slot"][place] = value
        with pytest.raises(ValueError, match="slot: found invalid slots, expected 0 to 8 once each"):
            readout.restore({})


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"head": 38}, "head: found 38, expected a whole number from 0 to 37"),
        ({"head": 36, "clusters": 2}, "clusters: found 2, expected a whole number from 1 to 1"),
        ({"head": 3, "clusters": 0}, "clusters: found 0, expected a whole number from 1 to 34"),
        ({"share": 0.0}, "share: found 0.0, expected a share"),
    ],
)
def test_bad_settings_are_refused(given, message):
    with pytest.raises(ValueError, match=message):
        HeadReadout(COUNTS, WIDTH, parts=HeadParts(**given))
