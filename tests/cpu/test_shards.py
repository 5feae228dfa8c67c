"""The rows of a table, dealt to shards in whole chunks."""

import pytest

from cpu.shards import CHUNK, SHARDS, largest, part


@pytest.mark.parametrize("count", [0, 1, CHUNK - 1, CHUNK, CHUNK + 1, SHARDS * CHUNK, SHARDS * CHUNK + 1, 100_003])
def test_every_row_has_one_shard_and_no_chunk_is_cut(count):
    parts = [part(shard, count) for shard in range(SHARDS)]
    assert [row for first, last in parts for row in range(first, last)] == list(range(count))
    assert all(first % CHUNK == 0 for first, last in parts if last > first)
    assert max(last - first for first, last in parts) <= largest(count)


def test_by_hand():
    assert largest(1) == CHUNK and largest(SHARDS * CHUNK) == CHUNK and largest(SHARDS * CHUNK + 1) == 2 * CHUNK
    assert part(SHARDS - 1, 1) == (0, 1) and part(0, 1) == (0, 0)
