"""What models share that are an engine (hybrid/models/_engine.py)."""

from types import SimpleNamespace

import pytest

from hybrid.models import _engine


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
