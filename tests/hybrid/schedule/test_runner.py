"""What runs of a model leave behind, however they end; tests/hybrid/engine/test_engine.py has more of them."""

import pytest

from tests.support.small_engine import Feed, engine


def test_a_run_that_is_left_ends_where_the_next_begins():
    trained = engine()
    first = trained.run(Feed())
    next(first)
    next(trained.run(Feed()))
    assert (trained.tick, trained.torn) == (2, None)
    with pytest.raises(RuntimeError, match="engine: found a run that ended when another run"):
        next(first)


def test_what_fails_when_a_run_ends_tears_the_model(monkeypatch):
    trained = engine()

    def failed():
        raise OSError("no room")

    monkeypatch.setattr(trained, "_leave", failed)
    with pytest.raises(OSError, match="no room"):
        list(trained.run(Feed(1)))
    assert trained.torn == "tick 1 failed half-way: no room"
