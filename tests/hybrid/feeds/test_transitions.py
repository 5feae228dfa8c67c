"""Counts of what comes soon after what, against loops of Python, and vectors made of them."""

import numpy as np

from hybrid.feeds.interactions import Histories
from hybrid.feeds.sequences import transition_vectors, transitions, turned

TABLE = Histories(np.array([0, 1, 2, 1, 3, 2], np.int32), np.array([0, 4, 6]), ["a", "b"], list("vwxyz"))


def test_places_count_less_the_further_away_and_users_apart():
    expected = np.zeros((5, 5))
    for items in ([0, 1, 2, 1], [3, 2]):
        for first, item in enumerate(items):
            for distance, after in enumerate(items[first + 1 : first + 3]):
                expected[item, after] += 0.5**distance
    np.testing.assert_allclose(transitions(TABLE, 2, 0.5).toarray(), expected)


def test_vectors_give_the_table_back_and_an_item_that_nobody_has_is_0():
    found = transition_vectors(TABLE, 7).astype(float)
    table = transitions(TABLE).toarray()
    wanted = np.log1p(table + table.T)
    np.testing.assert_allclose(np.linalg.norm(found, axis=0)[:4] ** 2, np.linalg.svd(wanted)[1][:4], rtol=1e-4)
    np.testing.assert_allclose((found @ found.T) @ (found @ found.T), wanted @ wanted.T, atol=1e-4)
    assert not found[4].any() and not found[:, 4:].any()


def test_rows_are_turned_and_stay_as_long():
    rows = np.random.default_rng(0).normal(size=(3, 4)).astype(np.float32)
    towards = np.array([[9, 0, 0, 0], [0, 0, 0, 0], [0, 0, 0.1, 0]], np.float32)
    found = turned(rows, towards)
    np.testing.assert_allclose(np.linalg.norm(found, axis=1), np.linalg.norm(rows, axis=1), rtol=1e-5)
    np.testing.assert_allclose(found[1], rows[1], rtol=1e-5)
    assert found[0, 0] / np.linalg.norm(found[0]) > 0.9 and found[2, 2] / np.linalg.norm(found[2]) > 0.9
