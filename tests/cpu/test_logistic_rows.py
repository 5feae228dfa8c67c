"""Examples through lists of rows (also cpu/tree/logistic_visit.py): against plain NumPy, by difference, and bit for bit."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cpu.tree import logistic_rows
from cpu.tree.logistic_rows import OWNERS
from hybrid.contract import Learned
from tests.support.visits import learn


def case(batch, width, rows, most, seed=0):
    """Random rows, hidden vectors and lists; each example meets up to `most` rows, each once, sorted by owner."""
    rng = np.random.default_rng(seed)
    table = rng.normal(size=(rows, width)).astype(np.float32)
    hidden = rng.normal(size=(batch, width)).astype(np.float32)
    lists = []
    for _ in range(batch):
        met = rng.permutation(rows)[: rng.integers(0, most + 1)]
        lists.append([(int(row), int(rng.integers(2))) for row in sorted(met, key=lambda row: row % OWNERS)])
    return table, hidden, lists


def run(table, hidden, lists, rate):
    """logistic_rows.learn on copies of a case: grad, loss and the moved rows."""
    learned = Learned(table.copy())
    work = logistic_rows.workspace(len(lists), hidden.shape[1], max(map(len, lists)), hidden.dtype)
    for b, entries in enumerate(lists):
        work.entries[b, : len(entries)] = [2 * row + turn for row, turn in entries]
        owners = np.array([row % OWNERS for row, _ in entries])
        work.cuts[b] = [np.sum(owners < owner) for owner in range(OWNERS + 1)]
    grad, loss = np.empty_like(hidden), np.empty(len(hidden), hidden.dtype)
    logistic_rows.learn(grad, loss, learned, work, hidden, None, rate)
    return grad, loss, learned.rows


@pytest.mark.parametrize("score", [0, 1, -1, 20, -20, 80, -80, 1e4, -1e4])
def test_loss_is_accurate_at_both_ends(score):
    one = np.ones((1, 1), np.float32)
    for turn in (0, 1):
        _, loss, _ = run(one * np.float32(score), one, [[(0, turn)]], 0.1)
        np.testing.assert_allclose(loss[0], np.logaddexp(0, -score if turn else score), rtol=3e-7, atol=1e-38)


@given(st.integers(1, 40), st.integers(1, 9), st.integers(0, 9), st.integers(0, 2**31))
def test_any_sizes(width, batch, most, seed):
    table, hidden, lists = case(batch, width, rows=9, most=max(most, 1), seed=seed)
    grad, loss, moved = run(table, hidden, lists, 0.1)
    rows = table.astype(float)
    expected_grad, expected_loss = learn(rows, hidden.astype(float), lists, 0.1)
    for found, expected in ((grad, expected_grad), (loss, expected_loss), (moved, rows)):
        np.testing.assert_allclose(found, expected, rtol=0, atol=1e-4)
