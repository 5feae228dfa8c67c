"""Ranks whose trunks are on a simulated GPU, each on one of its own, learn what one process learns there, to the byte."""

import pytest

from tests.support.rank_engine import ON_GPU
from tests.support.ranks import succeed


def test_ranks_learn_what_one_process_does(gpu, tmp_path):
    if not gpu.simulated:
        pytest.skip("one device has no room for the ranks of this test")
    succeed("tests.support.rank_engine", "equal", tmp_path, *ON_GPU, ranks=2)
