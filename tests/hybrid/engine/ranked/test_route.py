"""Ranks learn together what one process learns, to the byte."""

import pytest

from tests.support.rank_engine import ALONE, MODELS, train
from tests.support.same_ranks import same

RANKS = [2, 3, 4]


@pytest.fixture(scope="module")
def alone(tmp_path_factory):
    """The folder in which one process has trained all models, and what it found."""
    folder = tmp_path_factory.mktemp("ranks")
    return folder, {model: train(model, folder / model / ALONE) for model in MODELS}


@pytest.mark.parametrize("ranks", RANKS)
def test_any_number_of_ranks_learns_what_one_process_does(alone, ranks):
    same(*alone, ranks)
