"""Ranks learn together what one process learns, to the byte."""

import json

import pytest

from tests.support.rank_engine import ALONE, MODELS, go_on, train
from tests.support.ranks import ended, started

MODULE = "tests.support.rank_engine"
RANKS = [2, 3, 4]


@pytest.fixture(scope="module")
def alone(tmp_path_factory):
    """The folder in which one process has trained all models, and what it found."""
    folder = tmp_path_factory.mktemp("ranks")
    return folder, {model: train(model, folder / model / ALONE) for model in MODELS}


@pytest.mark.parametrize("ranks", RANKS)
def test_any_number_of_ranks_learns_what_one_process_does(alone, ranks):
    folder, expected = alone
    assert ended(started(str(folder), *MODELS, ranks=ranks, module=MODULE), 240) == (0, "", "")
    for model, whole in expected.items():
        resumed = whole | {"losses": whole["losses"][4:]}
        for rank in range(ranks):
            found = json.loads((folder / f"{model}.{ranks}.{rank}.json").read_text())
            assert found == [whole, resumed], (model, rank)
        for part in ("half", "end"):
            ours, theirs = (folder / model / who / part / "checkpoint.json" for who in (str(ranks), ALONE))
            assert ours.read_bytes() == theirs.read_bytes()
        assert go_on(model, folder / model / str(ranks) / "half") == resumed
