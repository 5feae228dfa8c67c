import gc

import pytest

from hybrid import console
from hybrid.train import runs


class Base:
    """What a listener of Numba's events is derived from."""


@pytest.fixture
def clock(monkeypatch):
    """The time that the listener reads: a list of one number."""
    now = [0.0]
    monkeypatch.setattr(runs.time, "perf_counter", lambda: now[0])
    monkeypatch.setattr(console, "quiet", False)
    return now


def compiled(listener, clock, seconds, within=()):
    """A function takes so long to compile, after those that it calls."""
    listener.on_start(None)
    for other in within:
        compiled(listener, clock, other)
    clock[0] += seconds
    listener.on_end(None)


def test_a_second_of_compiling_is_told_once(clock, capsys):
    listener = runs._listener(Base)
    compiled(listener, clock, 0.3, within=(0.3, 0.3))
    clock[0] += 100  # between two kernels
    assert capsys.readouterr().err == ""
    compiled(listener, clock, 0.05, within=(0.2, 5.0))
    compiled(listener, clock, 5.0)
    assert capsys.readouterr().err.count("compiling kernels") == 1


@pytest.mark.parametrize("was", [True, False])
def test_the_garbage_collector_waits_and_is_then_as_it_was(clock, was):
    listener = runs._listener(Base)
    (gc.enable if was else gc.disable)()
    try:
        listener.on_start(None)
        listener.on_start(None)
        listener.on_end(None)
        assert not gc.isenabled()
        listener.on_end(None)
        assert gc.isenabled() == was
    finally:
        gc.enable()
