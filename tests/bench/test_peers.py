"""A rival that is not installed is said to be missing, and left out."""

import subprocess
import sys

import pytest

from bench import peers
from tests.support.without_peers import WITHOUT


def test_a_missing_peer_is_said_once(monkeypatch, capsys):
    monkeypatch.setitem(sys.modules, "no_such_peer", None)
    assert peers.peer("no_such_peer") is None and peers.peer("no_such_peer") is None
    assert capsys.readouterr().out.count("no_such_peer is not measured") == 1


@pytest.mark.parametrize("name, peer", [("tree", "fasttext"), ("units", "torch")])
def test_a_benchmark_runs_without_its_peers(name, peer):
    code = f"{WITHOUT}main(['{name}', '--quick', '--repeat', '1', '--threads', '1'])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert f"{peer} is not measured" in done.stdout and "  ours  " in done.stdout


def test_what_is_a_library_s_as_a_whole_is_a_gap():
    """A benchmark of losses for PyTorch, problems whose contenders are nets of PyTorch or estimators of scikit-learn."""
    code = f"{WITHOUT}sys.exit(main(['plugs_losses', '--quick']) or main('quality --quick --only lstm --only yeast'.split()))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert [line.split(":")[0] for line in done.stdout.splitlines()] == [
        f"{gap} is not measured" for gap in ("torch", "lstm", "yeast")
    ]
