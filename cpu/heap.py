"""A heap of (key, item) pairs in two arrays, the greatest at its top: what best-first searches go on from next."""

import numpy as np

from cpu.compiled import called, launched


@launched()
def push(keys, items, size, key, item):
    """Add to the heap, which doubles when it is full; returns its size and arrays."""
    if size == keys.size:
        keys, items = _doubled(keys), _doubled(items)
    place = size
    while place:
        up = (place - 1) // 2
        if (keys[up], items[up]) >= (key, item):
            break
        keys[place], items[place] = keys[up], items[up]
        place = up
    keys[place], items[place] = key, item
    return size + 1, keys, items


@launched()
def drop(keys, items, size):
    """Remove the top of the heap, if there is one; returns its size."""
    if size < 2:
        return 0
    size -= 1
    key, item = keys[size], items[size]
    place = 0
    while 2 * place + 1 < size:
        down = 2 * place + 1
        if down + 1 < size and (keys[down + 1], items[down + 1]) > (keys[down], items[down]):
            down += 1
        if (key, item) >= (keys[down], items[down]):
            break
        keys[place], items[place] = keys[down], items[down]
        place = down
    keys[place], items[place] = key, item
    return size


@called()
def _doubled(values):
    """A copy with room for twice as many; a loop, since np.append takes Numba long to compile."""
    out = np.empty(2 * values.size, values.dtype)
    for i in range(values.size):
        out[i] = values[i]
    return out
