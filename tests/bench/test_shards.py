"""A table that exceeds what each rank may have trains on four of them; memory is counted, no time is measured."""

import json

import numpy as np
import pytest

from bench.__main__ import main
from tests.support.ranks import ended, started


@pytest.mark.parametrize(("ranks", "said"), [(4, "trained"), (1, "no memory")])
def test_a_table_over_one_ranks_memory(ranks, said):
    """The same program and the same limit: one rank has no room for the table, four have."""
    code, out, err = ended(started(ranks=ranks, module="tests.support.rank_memory"), limit=200)
    assert (code, out, err) == (0, f"{said}\n", "")


def test_the_command_tells_what_each_rank_had(tmp_path, capsys):
    main(["shards", "--gb", "0.02", "--ranks", "2", "--limit", "6", "--json", str(tmp_path / "found")])
    found = json.loads((tmp_path / "found").read_text())
    ranks = np.array(found["ranks"])
    assert ranks.shape == (2, 4) and abs(ranks[:, 0].sum() - found["table"]) == 0 and found["limit"] == 6 * 10**9
    assert (ranks[:, 1] > 0).all() and (ranks[:, 2] > ranks[:, 0]).all()
    out = capsys.readouterr().out
    assert "each rank may have 6.00 GB" in out and out.count("\n| ") == 3


def test_too_little_room_is_told(capfd):
    with pytest.raises(ValueError, match="--limit gives them more room"):
        main(["shards", "--gb", "0.02", "--ranks", "2", "--limit", "0.2"])
