"""Rows that a whole batch moves at once, in pieces, against float64."""

import numpy as np
import pytest

from gpu import batch_rows
from tests.support import visits


def moved(gpu, learned, misses, hidden, rate):
    there = visits.copied(learned, gpu.put)
    gpu.run(batch_rows.move, there, gpu.put(misses), gpu.put(hidden), rate)
    return visits.copied(there, gpu.get)


def problem(optimiser, biases, rows=75, width=33, batch=41):
    rng = np.random.default_rng([rows, width, batch])
    misses, hidden = rng.normal(size=(batch, rows)), rng.normal(size=(batch, width)) / np.sqrt(width)
    return visits.drawn(rng, rows, width, optimiser, biases), misses.astype(np.float32), hidden.astype(np.float32)


def oracle(learned, misses, hidden, rate):
    learned, misses = visits.copied(learned), misses.astype(float)
    for row, (g, g_bias) in enumerate(zip(misses.T @ hidden, misses.sum(axis=0), strict=True)):
        visits.visit(learned, row, g, g_bias, rate)
    return learned


@pytest.mark.parametrize(("optimiser", "biases"), [("sgd", True), ("row-adagrad", False), ("adagrad", True)])
def test_against_float64(gpu, monkeypatch, biases, optimiser):
    monkeypatch.setattr(batch_rows, "NUMBERS", 20 * 33)  # pieces of 20 rows, and a last one of 15
    given, rate = problem(optimiser, biases), 0.1
    visits.check_close(moved(gpu, *given, rate), oracle(*given, rate), 2e-5)


def test_pieces_change_no_bit(gpu, monkeypatch, optimiser="adagrad"):
    """Of a cuBLAS that sums in one order whatever the size; a real one takes another kernel for a row alone."""
    given, rate = problem(optimiser, True), 0.1
    whole = moved(gpu, *given, rate)
    monkeypatch.setattr(batch_rows, "NUMBERS", 1)  # a row each
    gpu.order(3)
    for one, other in zip(moved(gpu, *given, rate), whole, strict=True):
        if not gpu.simulated and one is not None:
            np.testing.assert_allclose(one, other, rtol=1e-4, atol=1e-5)
        else:
            assert one is other is None or one.tobytes() == other.tobytes()


def test_no_examples_move_nothing(gpu, optimiser="adagrad"):
    learned, misses, hidden = problem(optimiser, True)
    found = moved(gpu, learned, misses[:0], hidden[:0], 0.1)
    assert found.rows.tobytes() == learned.rows.tobytes()


@pytest.mark.parametrize("optimiser", ["row-adagrad", "adagrad"])
def test_a_nan_stays_visible(gpu, optimiser):
    learned, misses, hidden = problem(optimiser, False)
    misses[3, 7] = np.nan
    rows = moved(gpu, learned, misses, hidden, 0.1).rows
    assert np.isnan(rows).all(axis=1).nonzero()[0].tolist() == [7] and np.isfinite(np.delete(rows, 7, 0)).all()
