"""Ids sorted on the device, against NumPy's stable sort."""

import numpy as np
import pytest

from gpu import sort
from tests.support.drawn_ids import zipf

T = sort.TILE


def check(gpu, ids, rows):
    order = np.argsort(ids, kind="stable")
    keys, places = gpu.run(sort.by_id, gpu.put(ids), rows)
    np.testing.assert_array_equal(gpu.get(keys), ids[order])
    np.testing.assert_array_equal(gpu.get(places), order)


@pytest.mark.parametrize("count", [1, 31, 32, 33, 200])
def test_short_lists(gpu, count):
    check(gpu, zipf(np.random.default_rng(count), 40, count), 40)


@pytest.mark.parametrize(
    ("count", "rows"),
    [(1, 257), (255, 1), (T - 1, 256), (T, 70_000), (T + 1, 257), (3 * T + 77, 256), (3 * T + 77, 70_000)],
)
def test_long_lists(gpu, monkeypatch, count, rows):
    monkeypatch.setattr(sort, "SHORT", 0)
    check(gpu, zipf(np.random.default_rng([count, rows]), rows, count), rows)


@pytest.mark.parametrize("rows", [2**24, 2**31 - 1])
def test_large_ids(gpu, monkeypatch, rows):
    ids = np.random.default_rng(1).integers(0, rows, 300).astype(np.int32)
    ids[7], ids[50:60] = rows - 1, ids[3]
    check(gpu, ids, rows)
    monkeypatch.setattr(sort, "SHORT", 0)
    check(gpu, ids, rows)


@pytest.mark.parametrize("short", [0, 1000])
@pytest.mark.parametrize("ids", [np.full(300, 9), np.arange(300), np.arange(300)[::-1], np.arange(300) % 2])
def test_equal_rising_and_falling_ids(gpu, monkeypatch, ids, short):
    monkeypatch.setattr(sort, "SHORT", short)
    check(gpu, ids.astype(np.int32), 300)


def test_the_order_of_work_on_the_device_changes_nothing(gpu):
    for _ in gpu.orders(2):
        check(gpu, zipf(np.random.default_rng(2), 3000, sort.SHORT + 1), 3000)
