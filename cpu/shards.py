"""The rows of a table in chunks that fit the cache, divided among a number of shards; one thread computes a shard.

Sums are taken over the chunks of a shard, then over the shards, in their order: so bits depend on the number of shards, and
not on that of threads.
"""

from cpu.compiled import launched

CHUNK = 256  # rows of a table that are worked together: 1 MB of products with 1024 others, which a core's cache holds
SHARDS = 16  # the most threads that share one table


@launched()
def part(shard, shards, count):
    """The first of a shard's rows and the one after its last: whole chunks, dealt evenly."""
    chunks = -(-count // CHUNK)
    return shard * chunks // shards * CHUNK, min((shard + 1) * chunks // shards * CHUNK, count)


def largest(shards: int, count: int) -> int:
    """The most rows that one of so many shards has."""
    return -(-count // (shards * CHUNK)) * CHUNK
