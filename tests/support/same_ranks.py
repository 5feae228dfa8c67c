"""Ranks of tests/support/rank_engine.py, held against what one process has found."""

import json
from pathlib import Path

from tests.support.rank_engine import ALONE, HALF, go_on
from tests.support.ranks import ended, started


def same(folder: Path, expected: dict, ranks: int, limit: float = 480.0) -> None:
    """Train these models on ranks: what they find, what they save, and what goes on from either is that of one process.

    folder    where one process has saved its models
    expected  what it found, by model
    """
    assert ended(started(str(folder), *expected, ranks=ranks, module="tests.support.rank_engine"), limit) == (0, "", "")
    for model, whole in expected.items():
        resumed = whole | {"losses": whole["losses"][HALF:]}
        for rank in range(ranks):
            found = json.loads((folder / f"{model}.{ranks}.{rank}.json").read_text())
            assert found == [whole, resumed], (model, rank)
        for part in ("half", "end"):
            ours, theirs = (folder / model / who / part / "checkpoint.json" for who in (str(ranks), ALONE))
            assert ours.read_bytes() == theirs.read_bytes()
        assert go_on(model, folder / model / str(ranks) / "half") == resumed
