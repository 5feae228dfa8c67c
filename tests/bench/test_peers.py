"""A rival that is not installed is said to be missing, and left out."""

import sys

from bench.harness import peers


def test_a_missing_peer_is_said_once(monkeypatch, capsys):
    monkeypatch.setitem(sys.modules, "no_such_peer", None)
    assert peers.peer("no_such_peer") is None and peers.peer("no_such_peer") is None
    assert capsys.readouterr().out.count("no_such_peer is not measured") == 1
