"""Operations a byte of every stage, which runs, and whose result is checked."""

import pytest

from tests.support.bench_command import measured

NAMES = (
    *("units step (1)", "units step (16)", "pvm frame", "dense forward", "dense backward"),
    *("full softmax", "sampled softmax", "tree step", "rows gather", "rows scatter"),
)


def test_every_stage_runs_and_is_held_against_the_roof(tmp_path):
    _, records = measured("intensity", tmp_path, "--quick", "--repeat", "1")
    assert [one.params["stage"] for one in records] == list(NAMES)
    by = {one.params["stage"]: one for one in records}
    assert by["units step (1)"].intensity == pytest.approx(0.6, abs=0.05)  # nearly five operations for eight bytes
    for one in records:
        assert one.checked and one.intensity == pytest.approx(one.operations / one.moved)
        assert one.roof == pytest.approx(min(one.peak, one.intensity * one.bandwidth))
        assert one.roof_share == pytest.approx(one.value / one.roof)
