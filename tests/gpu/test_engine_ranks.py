"""Ranks whose trunks are on a simulated GPU, each on one of its own, learn what one process learns there, to the byte."""

import json

import pytest

from tests.support.rank_engine import ALONE, ON_GPU, train
from tests.support.ranks import ended, started


def test_ranks_learn_what_one_process_does(gpu, tmp_path, ranks=2):
    if not gpu.simulated:
        pytest.skip("one device has no room for the ranks of this test")
    expected = {model: train(model, tmp_path / model / ALONE) for model in ON_GPU}
    assert ended(started("train", str(tmp_path), *ON_GPU, ranks=ranks, module="tests.support.rank_engine"), 120) == (
        0,
        "",
        "",
    )
    for model, whole in expected.items():
        resumed = whole | {"losses": whole["losses"][4:]}
        for rank in range(ranks):
            found = json.loads((tmp_path / f"{model}.{ranks}.{rank}.json").read_text())
            assert found == [whole, resumed, []], (model, rank)
