"""What models share that are an engine (hybrid/models/_engine.py)."""

from types import SimpleNamespace

import pytest

from hybrid.models import _engine, language
from hybrid.train.options import choose


@pytest.fixture
def options(tmp_path):
    path = tmp_path / "some.txt"
    path.write_text("a b c d e f g h\n" * 20)
    small = {"width": 4, "hidden": 4, "readout_width": 4, "min_count": 1, "device": "cpu", "threads": 1}
    return {"text": str(path), "valid": str(path), **small}


def test_a_readout_placed_by_measuring_is_kept_with_its_mode(options):
    job = language.prepare(choose("language", **options, readout="tree", readout_device="auto"))
    assert job.chosen(job.make()) == {"readout_device": "cpu", "mode": "deterministic"}


@pytest.mark.parametrize(
    ("ticks", "due"), [(1, {0}), (3, {0, 1, 2}), (4, {0, 1, 2, 3}), (10, {0, 2, 5, 7}), (100, {0, 25, 50, 75})]
)
def test_a_model_is_measured_four_times_an_epoch(ticks, due):
    job = _engine.EngineJob({}, SimpleNamespace(ticks_per_epoch=ticks))
    for epoch in (0, 1, 2):
        begun = range(epoch * ticks, (epoch + 1) * ticks)
        found = {tick - begun[0] for tick in begun if job.due(SimpleNamespace(tick=tick)) is not None}
        assert found == due
        assert job.due(SimpleNamespace(tick=begun[0])) == begun[0]
