"""Engines whose rows and nodes are in shards: a table over one rank's memory, and a tree over a million classes.

Small ones are in test_route.py. (hybrid/sharded/rebuilt.py too)
"""

import pytest

from tests.support.rank_engine import ALONE, train
from tests.support.ranks import ended, started
from tests.support.same_ranks import same


@pytest.mark.parametrize(("ranks", "said"), [(4, "trained"), (1, "no memory")])
def test_a_table_over_one_ranks_memory_is_trained_saved_and_loaded(tmp_path, ranks, said):
    """The same program and the same limit: one rank has no room for the table, four have."""
    running = started(str(tmp_path), ranks=ranks, module="tests.support.rank_engine_memory")
    assert ended(running, 400) == (0, f"{said}\n", "")


@pytest.mark.slow
def test_a_million_classes_on_1_2_and_4_ranks(tmp_path):
    alone = train("a million", tmp_path / "a million" / ALONE)
    for ranks in (1, 2, 4):
        same(tmp_path, {"a million": alone}, ranks, limit=600)
