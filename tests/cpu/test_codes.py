import numba
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cpu.output.topk import Excluded
from cpu.search import codes, index
from cpu.vectors import simd
from tests.support.neighbours import clustered


def best(table, hidden, k, share=1.0, without=None):
    ids, scores = index.empty(len(hidden), k, np.float32)
    return ids, scores, codes.search(ids, scores, table, hidden, share, without)


def oracle(weights, hidden, bias=None):
    """All products in float64."""
    return hidden.astype(float) @ weights.T.astype(float) + (0 if bias is None else bias.astype(float))


@settings(max_examples=60, deadline=None)
@given(
    rows=st.integers(1, 700),
    width=st.integers(1, 70),
    queries=st.integers(1, 9),
    k=st.integers(1, 12),
    biased=st.booleans(),
    whole=st.booleans(),
    power=st.integers(-12, 12),
    seed=st.integers(0, 999),
)
def test_the_k_largest_are_those_of_products_in_float64(rows, width, queries, k, biased, whole, power, seed):
    """Of any scale; and of small whole numbers, among which many products are equal: then the lower id is first."""
    rng, k = np.random.default_rng(seed), min(k, rows)
    weights, hidden, bias = (rng.normal(size=size) for size in ((rows, width), (queries, width), rows))
    if whole:
        weights, hidden, bias = (np.rint(one) for one in (weights, hidden, bias))
    else:
        weights *= 10.0 ** (power + rng.integers(-2, 3, (rows, 1)))
        bias *= 10.0**power
    weights, hidden, bias = (one.astype(np.float32) for one in (weights, hidden, bias))
    table = codes.encode(weights, bias if biased else None, seed=seed)
    ids, scores, read = best(table, hidden, k)
    right = oracle(weights, hidden, bias if biased else None)
    order = np.argsort(-right, axis=1, kind="stable")[:, :k]
    np.testing.assert_allclose(scores, np.take_along_axis(right, order, 1), rtol=1e-6)
    if whole:
        np.testing.assert_array_equal(ids, order)
    assert (np.diff(np.sort(ids)) > 0).all() and (read <= rows).all()


@pytest.mark.parametrize("width", [3, 40, 300])
def test_no_row_and_no_cluster_scores_more_than_its_bound(width):
    weights, hidden = clustered(1500, width), clustered(60, width, seed=1)
    bias = np.random.default_rng(1).normal(size=1500).astype(np.float32)
    table = codes.encode(weights, bias)
    right = oracle(weights, hidden, bias)[:, table.ids]
    numbers, lengths, scales = (one.astype(float) for one in codes._numbers(hidden, table))
    cluster = np.repeat(np.arange(len(table.centres)), np.diff(table.ends))
    dots = oracle(table.centres, hidden)
    product = numbers @ table.codes.reshape(1500, -1).T.astype(float)
    about = dots[:, cluster] + table.highest + scales[:, None] * table.scales * product
    slack = table.off * lengths[:, None]
    assert (right <= about + slack).all() and (right >= about - slack - 1e-5).all()
    scale = np.median(lengths) * np.median(np.linalg.norm(weights, axis=1))
    assert np.median(slack) < 0.02 * scale  # and is worth something
    radius, highest, off = table.bounds.astype(float)
    bounds = dots + highest + lengths[:, None] * (radius + off)
    assert (np.maximum.reduceat(right, table.ends[:-1], axis=1) <= bounds).all()


def test_the_best_do_not_depend_on_threads_or_on_the_rest_of_a_batch(threads):
    weights, hidden = clustered(3000, 32), clustered(60, 32, seed=1)
    table = codes.encode(weights)
    together = best(table, hidden, 7)[:2]
    alone = [best(table, hidden[b : b + 1], 7)[:2] for b in range(len(hidden))]
    right = np.argsort(-oracle(weights, hidden), axis=1, kind="stable")[:, :7]
    np.testing.assert_array_equal(together[0], right)
    for part in (0, 1):
        np.testing.assert_array_equal(together[part], np.concatenate([one[part] for one in alone]))


def test_what_is_excluded_is_not_found():
    weights, hidden = clustered(900, 16), clustered(60, 16, seed=1)
    right = np.argsort(-oracle(weights, hidden), axis=1, kind="stable")
    left_out = np.sort(right[:, :50], axis=1).astype(np.int32)
    at = np.arange(len(hidden) + 1) * 50
    table, without = codes.encode(weights), Excluded(at[:-1], at[1:], left_out.ravel())
    np.testing.assert_array_equal(best(table, hidden, 5, without=without)[0], right[:, 50:55])
    every = np.tile(np.arange(1, 900, dtype=np.int32), len(hidden))
    at = np.arange(len(hidden) + 1) * 899
    ids, scores, _ = best(table, hidden, 2, without=Excluded(at[:-1], at[1:], every))
    assert (ids == [0, -1]).all() and np.isneginf(scores[:, 1]).all()


@pytest.mark.parametrize("instruction", {"", simd.INSTRUCTION})
def test_products_of_bytes_with_and_without_the_processors_instruction(instruction, monkeypatch):
    """At the ends of their ranges, too: pairs are added in 32 bits."""
    monkeypatch.setattr(simd, "INSTRUCTION", instruction)
    add, none, total = simd.add_byte_products, simd.no_products, simd.sum_products

    @numba.njit
    def product(codes, numbers, begin):
        return total(add(codes, begin, numbers, 0, none()))

    rng = np.random.default_rng(0)
    for ends in (True, False):
        left = rng.choice([-127, 127], 100) if ends else rng.integers(-127, 128, 100)
        right = rng.choice([-32767, 32767], 100) if ends else rng.integers(-32767, 32768, 100)
        for begin in (0, 3):
            found = product(left.astype(np.int8), right.astype(np.int16), begin)
            assert found == left[begin : begin + simd.BYTES] @ right[: simd.BYTES]
