"""Runs of a Predictive Vision Model whose feed fails on the way."""

import pytest

from hybrid.cli import main
from hybrid.feeds.video.frames import Frames
from tests.hybrid.pvm.tiny import command


def at_tick(monkeypatch, tick, act):
    """Do something when the feed is asked for a tick."""
    real = Frames.__getitem__

    def asked(self, number):
        if number == tick:
            act()
        return real(self, number)

    monkeypatch.setattr(Frames, "__getitem__", asked)


def whole_and_crashed(monkeypatch, folder, tick, *options):
    """The folders of a run to its end, and of one whose feed crashed at a tick."""
    whole, crashed = folder / "whole", folder / "crashed"
    assert main(command(folder, whole, *options)) == 0

    def crash():
        raise RuntimeError("power cut")

    with monkeypatch.context() as patch, pytest.raises(RuntimeError):
        at_tick(patch, tick, crash)
        main(command(folder, crashed, *options))
    return whole, crashed
