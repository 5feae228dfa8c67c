"""The rows of a table, dealt to shards in whole chunks."""

import pytest

from cpu.vectors.blas import CHUNK, SHARDS, largest_shard, shard_part


@pytest.mark.parametrize("shards", [1, SHARDS, 64])
@pytest.mark.parametrize("count", [0, 1, CHUNK - 1, CHUNK, CHUNK + 1, SHARDS * CHUNK, SHARDS * CHUNK + 1, 100_003])
def test_every_row_has_one_shard_and_no_chunk_is_cut(count, shards):
    parts = [shard_part(shard, shards, count) for shard in range(shards)]
    assert [row for first, last in parts for row in range(first, last)] == list(range(count))
    assert all(first % CHUNK == 0 for first, last in parts if last > first)
    assert max(last - first for first, last in parts) <= largest_shard(shards, count)


def test_by_hand():
    assert [largest_shard(16, count) for count in (1, 16 * CHUNK, 16 * CHUNK + 1)] == [CHUNK, CHUNK, 2 * CHUNK]
    assert shard_part(15, 16, 1) == (0, 1) and shard_part(0, 16, 1) == (0, 0)
