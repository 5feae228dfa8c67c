"""Ranks whose trunks are on a simulated GPU, each on one of its own, learn what one process learns there, to the byte."""

from tests.support.rank_engine import ON_GPU
from tests.support.ranks import succeed


def test_ranks_learn_what_one_process_does(simulated, tmp_path):
    succeed("tests.support.rank_engine", "equal", tmp_path, *ON_GPU, ranks=2)
