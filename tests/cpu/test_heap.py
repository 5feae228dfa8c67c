"""The heap of best-first searches, against sorting."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from cpu.output.topk import drop, heap_push


@given(st.lists(st.tuples(st.sampled_from([-1.5, 0.0, 2.0]), st.integers(-9, 9)), max_size=30))
def test_items_come_out_in_falling_order_of_key_and_item(pairs):
    keys, items, size = np.empty(2), np.empty(2, np.int32), 0  # it doubles
    for key, item in pairs:
        size, keys, items = heap_push(keys, items, size, key, item)
    found = []
    while size:
        found.append((keys[0], items[0]))
        size = drop(keys, items, size)
    assert found == sorted(pairs, reverse=True) and drop(keys, items, 0) == 0
