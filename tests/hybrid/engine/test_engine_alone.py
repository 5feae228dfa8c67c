"""hybrid/engine/engine.py without ranks of its own, in a process that is one of several."""

from types import SimpleNamespace

from tests.support.small_engine import Feed, engine


def test_it_learns_by_itself(monkeypatch):
    monkeypatch.setattr("hybrid.mpi.group.world", lambda: SimpleNamespace(rank=1, size=2, number=1, host="here"))
    trained = engine()
    assert (trained.ranks.rank, trained.ranks.size) == (0, 1)
    assert len(list(trained.run(Feed(3)))) == 3
