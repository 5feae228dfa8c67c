"""What models share that are an engine (hybrid/models/_engine.py)."""

from types import SimpleNamespace

import pytest

from hybrid import readout
from hybrid.models import _engine, language
from hybrid.train.options import choose


@pytest.fixture
def options(tmp_path):
    path = tmp_path / "some.txt"
    path.write_text("a b c d e f g h\n" * 20)
    small = {"width": 4, "hidden": 4, "readout_width": 4, "min_count": 1, "device": "cpu", "threads": 1}
    return {"text": str(path), "valid": str(path), **small}


@pytest.mark.parametrize(("batch", "parts", "examples"), [(10, 2, 5), (10, 3, 4), (10, 10, 1), (8, 1, 8)])
def test_a_place_is_measured_with_the_examples_of_the_largest_micro_batch(monkeypatch, options, batch, parts, examples):
    """By them a kind of readout tells which of its ways are safe to try."""
    asked, trials = [], readout.trials

    def noted(kind, given, classes, count):
        asked.append((kind, classes, count))
        return trials(kind, given, classes, count)

    monkeypatch.setattr(readout, "trials", noted)
    chosen = choose("language", **options, readout="tree", batch=batch, micro_batches=parts, readout_device="auto")
    job = language.prepare(chosen)
    model = job.make()
    assert asked == [("tree", len(job.vocabulary), examples)]
    assert job.chosen(model)["readout_device"] == "cpu"


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
