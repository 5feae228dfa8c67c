"""A table in shards: the inputs, the rows and the squares of one process, to the bit, at any number of ranks.

Also of hybrid/sharded/refused.py.
"""

import numpy as np
import pytest

from hybrid import backend
from hybrid.engine.embedding import Embedding
from hybrid.ranks.group import Group
from hybrid.sharded.embedding import PIECE, ShardedEmbedding
from tests.support import rank_rows
from tests.support.ranks import ended, started


@pytest.mark.parametrize("ranks", [2, 3, 4])
def test_as_one_process_to_the_bit(ranks):
    code, out, err = ended(started(ranks=ranks, module="tests.support.rank_rows"), limit=200)
    assert (code, out, err) == (0, "right\n", "")


def test_alone_as_one_process_to_the_bit():
    for settings in rank_rows.SHAPES:
        assert rank_rows.alike(Group(), "all", settings)


class Rank:
    """A rank that nobody needs to hear."""

    def __init__(self, rank, size):
        self.rank, self.size = rank, size


@pytest.mark.parametrize("size", [2, 3, 40])
def test_a_rank_has_its_share_of_a_table_drawn_in_pieces(monkeypatch, size):
    whole = Embedding(37, 7, seed=5).table
    monkeypatch.setattr("hybrid.sharded.embedding.PIECE", 50)
    for rank in range(size):
        own = ShardedEmbedding(Rank(rank, size), 37, 7, seed=5).table
        assert len(own) in (37 // size, 37 // size + 1)
        assert own.tobytes() == whole[rank::size].tobytes()
    assert PIECE * 8 < 2**24  # bytes of a piece, and of its numbers on their way: less than a rank can be short of


def test_what_shards_do_not_do_is_refused_by_name():
    group = Group()

    class Device:
        host_memory = False

    with pytest.raises(ValueError, match=r'rows: found "cuda:0" with shards, expected "cpu"'):
        ShardedEmbedding(group, 5, 3, backend=backend.Backend("cuda:0", Device(), {}))
    table = ShardedEmbedding(group, 5, 3)
    with pytest.raises(ValueError, match="add rows before"):
        table.add_rows(1)
    with pytest.raises(TypeError, match="embedding: found one in shards"):
        table.__reduce__()
    assert np.shape(table.table) == (5, 3)
