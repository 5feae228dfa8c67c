"""The clock that says when a run is saved."""

import time

import pytest

from hybrid.train.loop import Saves


@pytest.mark.parametrize("every", [0.5, 60])
def test_a_save_is_due_so_long_after_the_last(monkeypatch, every):
    now = 100.0
    monkeypatch.setattr(time, "monotonic", lambda: now)
    saves = Saves(every)
    for _ in range(2):
        assert not saves.due()
        now += 0.9 * every
        assert not saves.due()
        now += 0.1 * every
        assert saves.due() and saves.due()
        saves.done()
