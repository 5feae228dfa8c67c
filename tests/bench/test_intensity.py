"""Operations a byte: by hand on small sizes; every stage runs, and its result is checked."""

import pytest

from bench import intensity_counts as counts
from bench.intensity_counts import Count
from tests.support.bench_command import measured

NAMES = (
    *("units step (1)", "units step (16)", "pvm frame", "dense forward", "dense backward"),
    *("full softmax", "sampled softmax", "tree step", "rows gather", "rows scatter"),
)


def test_products_by_hand():
    """Two examples, three inputs, five outputs: 30 products each; 6 + 15 + 10 numbers."""
    assert counts.forward(2, 3, 5) == Count(60, 4 * 31)
    assert counts.backward(2, 3, 5) == Count(120, 4 * (10 + 2 * 6 + 2 * 15))


def test_readouts_by_hand():
    """Two examples of width 3: 12 numbers of hidden vectors and gradients; rows are read and written."""
    assert counts.full(2, 3, 7) == Count(6 * 2 * 3 * 7, 4 * (42 + 12))
    assert counts.sampled(2, 3, 4, 6) == Count(6 * 2 * 3 * 5, 4 * (36 + 12))
    assert counts.tree(2, 3, 8, 5) == Count(6 * 8 * 3, 4 * (30 + 12))


def test_rows_by_hand():
    """Two bags of four ids, one of them twice, of width 3."""
    assert counts.gather(2, 3, 8, 7) == Count(24, 4 * (21 + 6))
    assert counts.scatter(2, 3, 8, 7) == Count(48, 4 * (42 + 6))


def test_the_roof_is_the_lower_of_two():
    assert Count(10, 20).intensity == 0.5
    assert Count(10, 20).attainable(peak=100, bandwidth=40) == 20
    assert Count(1000, 20).attainable(peak=100, bandwidth=40) == 100


def test_every_stage_runs_and_is_held_against_the_roof(tmp_path):
    _, records = measured("intensity", tmp_path, "--quick", "--repeat", "1")
    assert [one.params["stage"] for one in records] == list(NAMES)
    by = {one.params["stage"]: one for one in records}
    assert by["units step (1)"].intensity == pytest.approx(0.6, abs=0.05)  # nearly five operations for eight bytes
    for one in records:
        assert one.checked and one.intensity == pytest.approx(one.operations / one.moved)
        assert one.roof == pytest.approx(min(one.peak, one.intensity * one.bandwidth))
        assert one.roof_share == pytest.approx(one.value / one.roof)
