"""Checkpoints of shards are those of one process, to the byte, and go on at another number of ranks."""

import numpy as np
import pytest

from hybrid.engine.embedding import Embedding
from hybrid.readout import TreeReadout
from hybrid.storage import checkpoint
from tests.support import rank_saves
from tests.support.ranks import ended, started


@pytest.fixture(scope="module")
def alone():
    """The arrays of one process after 3 and after 6 ticks."""
    rows = Embedding(rank_saves.ROWS, rank_saves.WIDTH, **rank_saves.MOVES)
    tree = TreeReadout(rank_saves.COUNTS, rank_saves.WIDTH, **rank_saves.TREE)
    found = {}
    for tick in range(6):
        rank_saves.learn(tick, rows, tree)
        parts = (("embedding", rows), ("readout", tree))
        found[tick + 1] = {
            f"{part}.{name}": array.copy() for part, owner in parts for name, array in owner.parameters().items()
        }
    return found


def run(what, folder, ranks):
    return ended(started(what, str(folder), ranks=ranks, module="tests.support.rank_saves"), limit=200)


@pytest.mark.parametrize(("first", "then"), [(4, 3), (1, 2)])
def test_resumed_on_another_number_of_ranks(tmp_path, alone, first, then):
    for what, ranks, ticks in (("save", first, 3), ("load", then, 6)):
        assert run(what, tmp_path / "run", ranks) == (0, "", "")
        arrays, facts = checkpoint.load(tmp_path / "run")
        assert facts == {"ticks": ticks} and arrays.keys() == alone[ticks].keys()
        for name, array in arrays.items():
            assert array.tobytes() == alone[ticks][name].tobytes(), name


def test_a_save_that_fails_on_rank_0_fails_on_all(tmp_path):
    (tmp_path / "file").touch()
    code, out, err = run("save", tmp_path / "file" / "run", 2)
    assert (code, err) == (0, "") and out.startswith("all were told checkpoint")


def test_a_checkpoint_of_another_model_is_refused(tmp_path):
    checkpoint.save(tmp_path, {"embedding.table": np.zeros((7, 9), np.float32)}, {})
    code, _, err = run("load", tmp_path, 2)
    assert code and "a checkpoint of another model" in err
